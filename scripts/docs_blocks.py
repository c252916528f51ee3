"""Run the code blocks of a page of the documentation, in order, in one namespace and in the present folder.

    python -W error scripts/docs_blocks.py docs/index.md [--write]

- Blocks of Python are run; one with a title is written to the file of that name instead, as is any other titled block.
- A block of text after one of Python is what that prints. An estimate, "value ± error", may differ by three of its
  errors, and the error by a factor of three (errors below 1e-5 are alike); so may the ends of the 95% interval beside
  it. Other numbers may differ by 1% or by 0.01, and by a factor of three after the comment ``<!-- about -->``. A
  line that is "..." stands for any lines.
- Commands after ``$`` in blocks of console are run, in the same folder; what follows is what they print. A comment
  ``# status 3`` says what they end with if not with 0.
- An HTML comment ``<!-- setup`` holds code that readers need not see.

With ``--write``, what is printed takes the place of what is shown; a block with "..." is kept if it is still right.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

NUMBER = re.compile(r"[-+−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
#: An estimate as it is printed: its value, its standard error, and the ends of its interval if they follow.
ESTIMATE = re.compile(
    rf"(?P<value>{NUMBER.pattern}) +± +(?P<error>{NUMBER.pattern})"
    rf"(?: +\(95%: (?P<low>{NUMBER.pattern}) to (?P<high>{NUMBER.pattern})\))?"
)
#: An estimate may be off what is shown by this many standard errors, and a standard error by this factor.
LARGEST_SHIFT, LARGEST_FACTOR = 3.0, 3.0
#: Standard errors below this are alike: they depend on which points were chosen last, and that on rounding.
NEGLIGIBLE = 1e-5
#: Half width of a 95% interval, in standard errors.
TWO_SIDED_95 = 1.96
FENCE = re.compile(r"^```(\w+)?(?: title=\"([^\"]+)\")?\s*$")
STATUS = re.compile(r"# status (\d+)$")
#: A file name in what a command prints, which begins with a folder that is another one each time.
FOLDER = re.compile(r"/\S*/")


@dataclass(frozen=True)
class Block:
    """A block of a page: its language, its title, the line it begins in, its text, and what stood right before it."""

    language: str
    title: str
    line: int
    text: str
    about: bool
    follows_code: bool


class Mismatch(Exception):
    """What was printed is not what the page shows."""


def blocks(text: str) -> list[Block]:
    """Return the blocks of a page, in order."""
    lines, found, number = text.split("\n"), [], 0
    between: list[str] = []
    while number < len(lines):
        line = lines[number]
        fence, setup = FENCE.match(line), line.strip() == "<!-- setup"
        if not (fence or setup):
            between.append(line.strip())
            number += 1
            continue
        end = lines.index("-->" if setup else "```", number + 1)
        words = [word for word in between if word]
        last = found[-1].language if found else ""
        found.append(
            Block(
                language="python" if setup else (fence[1] or ""),  # type: ignore[index]
                title="" if setup else (fence[2] or ""),  # type: ignore[index]
                line=number + 1,
                text="\n".join(lines[number + 1 : end]) + "\n",
                about="<!-- about -->" in words,
                follows_code=last == "python" and not [word for word in words if word != "<!-- about -->"],
            )
        )
        between, number = [], end + 1
    return found


def compare(shown: str, printed: str, about: bool) -> None:
    """Raise if what was printed is not what is shown, but for what numbers may differ by."""
    wanted, got = ([line for line in text.split("\n") if line.strip()] for text in (shown, printed))
    place = 0
    for position, line in enumerate(wanted):
        if line.strip() == "...":
            if position == len(wanted) - 1:
                return
            place = next((at for at in range(place, len(got)) if _alike(wanted[position + 1], got[at], about)), place)
            continue
        if place >= len(got) or not _alike(line, got[place], about):
            instead = got[place] if place < len(got) else "nothing"
            raise Mismatch(f"shown:   {line}\nprinted: {instead}")
        place += 1
    if place < len(got):
        raise Mismatch(f"shown:   nothing\nprinted: {got[place]}")


def _alike(shown: str, printed: str, about: bool) -> bool:
    shown, printed = (FOLDER.sub("", line) for line in (shown, printed))
    words = [" ".join(NUMBER.sub("#", line).split()) for line in (shown, printed)]
    if words[0] != words[1]:
        return False
    estimates = zip(ESTIMATE.finditer(shown), ESTIMATE.finditer(printed), strict=True)
    if not all(_same_estimate(one, other) for one, other in estimates):
        return False
    rest = (NUMBER.findall(ESTIMATE.sub("", line)) for line in (shown, printed))
    share = 1.0 - 1.0 / LARGEST_FACTOR if about else 0.01
    return all(
        abs(one - other) <= max(0.01, share * max(abs(one), abs(other)))
        for one, other in ((_number(texts[0]), _number(texts[1])) for texts in zip(*rest, strict=True))
    )


def _same_estimate(shown: re.Match[str], printed: re.Match[str]) -> bool:
    """Return whether two estimates agree within their errors, as far as their digits tell."""

    def pair(name: str) -> tuple[float, float]:
        return _number(shown[name]), _number(printed[name])

    def digits(name: str) -> float:
        return max(_last_digit(shown[name]), _last_digit(printed[name]))

    errors = pair("error")
    small, large = min(errors), max(errors)
    if large > max(LARGEST_FACTOR * small, NEGLIGIBLE) + digits("error"):
        return False
    shift = max(LARGEST_SHIFT * large, NEGLIGIBLE)
    value, other = pair("value")
    if abs(value - other) > shift + digits("value"):
        return False
    # An end moves with the value, and with the error.
    ends = [name for name in ("low", "high") if shown[name] is not None]
    return all(
        abs(pair(name)[0] - pair(name)[1]) <= shift + TWO_SIDED_95 * (large - small) + digits(name) for name in ends
    )


def _number(text: str) -> float:
    return float(text.replace("−", "-"))


def _last_digit(text: str) -> float:
    """Return what one unit of a number's last digit is worth."""
    mantissa, _, exponent = text.partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def run_command(line: str) -> str:
    """Run a command of a console block and return what it prints."""
    status = STATUS.search(line)
    command = STATUS.sub("", line)
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    wanted = int(status[1]) if status else 0
    if done.returncode != wanted:
        raise Mismatch(f"{command} ended with {done.returncode} and not with {wanted}:\n{done.stdout}{done.stderr}")
    # What zhat refuses is said on the other stream.
    return done.stdout if wanted == 0 else done.stdout + done.stderr


def run_console(block: Block, check: bool) -> str:
    """Run the commands of a console block, and return it with what they print, where anything is shown."""
    made = ""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        printed = run_command(command)
        if shown.strip() and check:
            compare(shown, printed, block.about)
        made += f"$ {command}\n" + (renewed(shown, FOLDER.sub("", printed), block.about) if shown.strip() else "")
    return made


def renewed(shown: str, printed: str, about: bool) -> str:
    """Return what a page is to show: what was printed, or what it leaves out of that if that is still right."""
    if "..." in (line.strip() for line in shown.split("\n")):
        with contextlib.suppress(Mismatch):
            compare(shown, printed, about)
            return shown
    return printed


def run_python(block: Block, path: Path, namespace: dict[str, object]) -> str:
    """Run a block and return what it prints."""
    # Line numbers in tracebacks are those of the page.
    code = compile("\n" * block.line + block.text, str(path), "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, namespace)
    return out.getvalue()


def run_page(path: Path, write: bool = False) -> None:
    """Run a page; raise what its code raises, or `Mismatch`."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    made: dict[int, tuple[int, str]] = {}
    for block in blocks(text):
        try:
            if block.title:
                Path(block.title).write_text(block.text, encoding="utf-8")
            elif block.language == "python":
                printed = run_python(block, path, namespace)
            elif block.language == "text" and block.follows_code:
                if not write:
                    compare(block.text, printed, block.about)
                made[block.line] = (block.text.count("\n"), renewed(block.text, printed, block.about))
            elif block.language == "console":
                made[block.line] = (block.text.count("\n"), run_console(block, not write))
        except Mismatch as error:
            raise Mismatch(f"{path}, line {block.line}:\n{error}") from None
    if write:
        for start, (n, instead) in sorted(made.items(), reverse=True):
            lines[start : start + n] = instead.rstrip("\n").split("\n")
        path.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    # ArviZ announces its next version whenever it is imported.
    warnings.filterwarnings("ignore", category=FutureWarning, module="arviz")
    warnings.filterwarnings("ignore", message=r"[\s\S]*ArviZ is undergoing", category=FutureWarning)
    run_page(Path(sys.argv[1]).resolve(), "--write" in sys.argv)
