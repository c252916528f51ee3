"""An energy that is an external program: it is told a point, and prints the value there. POSIX only."""

from __future__ import annotations

import difflib
import json
import math
import numbers
import os
import re
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass, field

from zhat.core.arrays import FloatArray
from zhat.errors import CommandFailed, CommandNotStarted, InvalidArgument
from zhat.evaluate.process import KEPT_BYTES, Ending, Tail, run
from zhat.problem.energy import ENERGY, Quantity

#: What is special in a command: a doubled brace, a name in braces, or a brace that is neither.
_SPECIAL = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")

#: Narrower than what `float` takes, which includes 1_000 and the digits of every script.
_NUMBER = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE)

#: How much of a line, and of standard error, a failure quotes.
_QUOTED_LINE = 80
_QUOTED_STDERR = 200


@dataclass(frozen=True)
class CommandEnergy:
    """An energy that is an external program, on POSIX systems. It can be pickled.

    The last line that the program prints, blank ones aside, is the value: one number (``inf`` where the probability is
    zero); two with a blank between them, which are the value and the standard deviation of its noise; or a JSON
    object ``{"energy": 1.5, "std": 0.1}``, of which ``std`` may be left out.

    The program runs in a session of its own. When its time runs out, when the wait for it is interrupted, or when the
    process that waits is killed, its whole process group is ended, by SIGTERM and 2 s later by SIGKILL. Processes that
    it leaves behind when it ends by itself are left alone.

    Attributes
    ----------
    command
        The program and its arguments. ``{name}`` stands for the value of a parameter, with all its digits; ``{{`` and
        ``}}`` are braces. Either every parameter has its place, or none: a program without places is given a JSON
        object, ``{"name": value, ...}``, on one line of its standard input.
    names
        The names of the parameters, in the order of the coordinates.
    timeout
        Seconds that one run may take; None for no limit.
    retries
        How often a run that failed is tried again.
    folder
        Each run gets a new folder of its own inside this one, and starts there. It is removed if the run succeeded, and
        kept if not. None to run in the current folder.
    keep_folders
        Whether the folders of runs that succeeded are kept too.
    base
        What ``folder``, and a program with a slash in its name such as ``./simulate``, are relative to: the folder
        where the study was started. Paths among the arguments are the program's own affair: it sees them from where it
        runs.
    quantity
        What the program prints: the energy, or a log-likelihood, which is ``-inf`` where the probability is zero and
        ``"log_likelihood"`` in a JSON object.
    """

    command: tuple[str, ...]
    names: tuple[str, ...]
    timeout: float | None = None
    retries: int = 0
    folder: str | None = None
    keep_folders: bool = False
    base: str = field(default_factory=os.getcwd)
    quantity: Quantity = ENERGY

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if not self.names or not _are_strings(self.names) or len(set(self.names)) < len(self.names):
            raise InvalidArgument("names", self.names, "a tuple of different strings, none of them empty")
        _check_command(self.command, self.names)
        if self.timeout is not None and not _is_positive(self.timeout):
            raise InvalidArgument("timeout", self.timeout, "a finite number of seconds above 0, or None")
        is_whole = isinstance(self.retries, numbers.Integral) and not isinstance(self.retries, bool)
        if not is_whole or self.retries < 0:
            raise InvalidArgument("retries", self.retries, "a whole number of at least 0")
        # A worker process may have another current folder.
        object.__setattr__(self, "base", os.path.abspath(self.base))

    @property
    def stdin(self) -> bool:
        """Whether the program is told the point on its standard input."""
        return not any(_placeholders(part) for part in self.command)

    def __call__(self, x: FloatArray) -> float | tuple[float, float]:
        """Return the value at a point, shape ``(d,)``, or the value and its noise; `CommandFailed` says why not."""
        if len(x) != len(self.names):
            raise InvalidArgument("x", x, f"{len(self.names)} coordinates: {', '.join(self.names)}")
        values = {name: float(value) for name, value in zip(self.names, x, strict=True)}
        for _ in range(self.retries):
            try:
                return self._attempt(values)
            except CommandFailed:
                continue
        try:
            return self._attempt(values)
        except CommandFailed as last:
            if self.retries == 0:
                raise
            raise type(last)(f"{last}; tried {self.retries + 1} times") from last

    def _attempt(self, values: dict[str, float]) -> float | tuple[float, float]:
        if self.folder is None:
            return self._value(values, None)
        folder = _new_folder(os.path.join(self.base, self.folder))
        value = self._value(values, folder)
        if not self.keep_folders:
            # A process that was left behind may still write there, which is no reason to lose the value.
            shutil.rmtree(folder, ignore_errors=True)
        return value

    def _value(self, values: dict[str, float], folder: str | None) -> float | tuple[float, float]:
        given, *arguments = [_filled(part, values) for part in self.command]
        program = os.path.join(self.base, given) if "/" in given else given
        line = json.dumps(values) + "\n" if self.stdin else None
        try:
            ending = run([program, *arguments], folder, line, self.timeout)
        except OSError as error:
            raise CommandNotStarted(_not_started(given, program, error)) from error
        if ending.returncode is None:
            raise CommandFailed(f"timed out after {self.timeout:g} s")
        if ending.returncode != 0:
            raise CommandFailed(_unsuccessful(ending))
        return _read_value(ending.out, self.quantity)


def _are_strings(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, str) and value for value in values)


def _is_positive(value: object) -> bool:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    return 0.0 < float(value) < math.inf


def _check_command(command: tuple[str, ...], names: tuple[str, ...]) -> None:
    is_words = isinstance(command, tuple) and all(isinstance(part, str) and "\0" not in part for part in command)
    if not is_words or not command or not command[0]:
        raise InvalidArgument("command", command, "a tuple of strings: a program and its arguments")
    used: set[str] = set()
    for part in command:
        for match in _SPECIAL.finditer(part):
            if match[0] in ("{", "}"):
                raise InvalidArgument("command", part, f"no lone {match[0]}; a brace itself is written {match[0] * 2}")
            if match[1] is not None and match[1] not in names:
                (nearest,) = difflib.get_close_matches(match[1], names, n=1, cutoff=0.0)
                wanted = f"the name of a parameter in braces; the nearest to {match[0]} is {{{nearest}}}"
                raise InvalidArgument("command", part, wanted)
        used.update(_placeholders(part))
    missing = [f"{{{name}}}" for name in names if name not in used]
    if used and missing:
        # Otherwise the value would not depend on them, and nobody would notice.
        raise InvalidArgument("command", command, f"a place for every parameter, or for none; without: {missing}")


def _placeholders(part: str) -> list[str]:
    return [match[1] for match in _SPECIAL.finditer(part) if match[1] is not None]


def _filled(part: str, values: dict[str, float]) -> str:
    # repr gives the shortest digits that read back as the same number.
    return _SPECIAL.sub(lambda match: match[0][0] if match[1] is None else repr(values[match[1]]), part)


def _new_folder(parent: str) -> str:
    """Return a new folder whose name begins with the time, so that a listing shows them in their order."""
    try:
        os.makedirs(parent, exist_ok=True)
        return tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=parent)
    except OSError as error:
        raise CommandNotStarted(f"no folder to run in: {error}") from error


def _not_started(given: str, program: str, error: OSError) -> str:
    shown = given if given == program else f"{given} ({os.path.normpath(program)})"
    if error.filename != program:
        # Not the program's fault: no room for its input, say.
        return f"cannot be started: {shown}: {error}"
    if isinstance(error, PermissionError):
        return f"not executable: {shown}"
    if isinstance(error, FileNotFoundError) and shutil.which(program) is None:
        return f"no such program: {shown}"
    if isinstance(error, FileNotFoundError):
        # The system says the same of a script whose first line names an interpreter that is missing.
        return f"cannot be started: {shown}: its interpreter is missing"
    return f"cannot be started: {shown}: {error.strerror}"


def _unsuccessful(ending: Ending) -> str:
    code = ending.returncode
    assert code is not None
    reason = f"exit status {code}" if code > 0 else f"killed by signal {_signal(-code)}"
    complaint = ending.err.text.strip()
    return f"{reason}; standard error ends: {complaint[-_QUOTED_STDERR:]!r}" if complaint else reason


def _signal(number: int) -> str:
    try:
        return f"{number} ({signal.Signals(number).name})"
    except ValueError:  # most real-time signals have no name
        return str(number)


def _read_value(out: Tail, quantity: Quantity) -> float | tuple[float, float]:
    """Return what the last line says: a value, or a value and its noise."""
    line = _last_line(out)
    value, std = _from_json(line, quantity.name) if line.startswith("{") else _from_words(line)
    if math.isnan(value):
        raise _unusable(line, "which is not a number")
    if value == -quantity.zero:
        raise _unusable(line, "which makes the integral infinite")
    if std is None:
        return value
    if not 0.0 <= std < math.inf:
        raise _unusable(line, "whose standard deviation is not a finite number of at least 0")
    return value, std


def _last_line(out: Tail) -> str:
    lines = out.text.splitlines()
    # The first line of what is kept may lack its beginning: the end of a number is another number.
    whole = lines[1:] if out.is_cut else lines
    for line in reversed(whole):
        if line.strip():
            return line.strip()
    raise CommandFailed(
        f"printed no whole line in its last {KEPT_BYTES // 1024} KiB" if out.is_cut else "printed nothing"
    )


def _from_json(line: str, name: str) -> tuple[float, float | None]:
    try:
        # As floats, whole numbers of any length are harmless.
        told = json.loads(line, parse_int=float)
    except (ValueError, RecursionError):
        raise _unusable(line, "which is not JSON") from None
    is_known = name in told and told.keys() <= {name, "std"}
    if not is_known or not all(isinstance(number, float) for number in told.values()):
        raise _unusable(line, f"which is not an object of {name} and perhaps std, both numbers")
    return told[name], told.get("std")


def _from_words(line: str) -> tuple[float, float | None]:
    # A comma alone separates nothing: in half of the world 1,5 is one number.
    words = re.split(r"\s*,\s+|\s+", line)
    if len(words) > 2 or not all(_NUMBER.fullmatch(word) for word in words):
        hint = " (wanted: decimal points, and a blank between two numbers)" if "," in line else ""
        raise _unusable(line, f"which is not a number{hint}")
    value, *std = map(float, words)
    return value, std[0] if std else None


def _unusable(line: str, reason: str) -> CommandFailed:
    shown = line if len(line) <= _QUOTED_LINE else line[: _QUOTED_LINE - 3] + "..."
    return CommandFailed(f"printed {shown!r}, {reason}")
