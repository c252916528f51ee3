"""A pool of worker processes on this machine."""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import queue
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, cast

from zhat.core.arrays import FloatArray
from zhat.errors import InvalidArgument
from zhat.evaluate.frames import read_frame, write_frame
from zhat.evaluate.pools import Evaluate, Pool, Results, own_copy
from zhat.evaluate.portable import energy_of, installed_first, packed
from zhat.problem.evaluations import Outcome

#: How often one point may cost a process its life.
_LIVES = 2
#: Seconds that a process has to end by itself, once it should.
_GRACE = 5.0
#: Seconds that a process has to end when its leash is let go of: it waits for the start of a program.
_LET_GO = 2.0
#: Seconds between looks whether a silent process still lives.
_HEARTBEAT = 0.1
_ONE_THREAD_EACH = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WorkerDied(Exception):
    """A worker process that ended, or could not be started. Its text says how, such as "exit code 3"."""


class CannotLoad(WorkerDied):
    """A worker process that could not load the function. Its text says why."""


class ProcessPool(Pool):
    """Evaluates in processes that each run one evaluation at a time.

    A process that dies costs its point one retry in a fresh process, and then a failed outcome; no other point is
    affected. More points than there are processes wait in a queue, from which a process that gets free takes the next.

    The processes are started anew, not forked, and the function is sent to them: a script needs no guard around its
    main program, and threads of this process are no danger. They end with this process, however it ends.

    Parameters
    ----------
    evaluate
        What is evaluated; a lambda, a closure, or a function of a script or a notebook will do.
    workers
        How many processes.

    Raises
    ------
    InvalidArgument
        If ``evaluate`` cannot be sent to another process, or not be loaded there.
    """

    def __init__(self, evaluate: Evaluate, workers: int) -> None:
        if workers < 1:
            raise InvalidArgument("workers", workers, "a whole number of at least 1")
        self._tasks: queue.SimpleQueue[tuple[int, FloatArray] | None] = queue.SimpleQueue()
        self._results = Results()
        self._started: queue.SimpleQueue[WorkerDied | None] = queue.SimpleQueue()
        origin = Origin.here(evaluate)
        self._children = [Child(origin) for _ in range(workers)]
        self._managers = [threading.Thread(target=self._manage, args=(child,), daemon=True) for child in self._children]
        try:
            for manager in self._managers:
                manager.start()
            for _ in self._managers:
                if problem := self._started.get():
                    verb = "loading it there failed" if isinstance(problem, CannotLoad) else "the process died"
                    wanted = f"a function that a worker process can load; {verb}: {problem}"
                    raise InvalidArgument("energy", energy_of(evaluate), wanted)
        except BaseException:
            self.close(now=True)
            raise

    @property
    def capacity(self) -> int:
        """The number of processes."""
        return len(self._children)

    def submit(self, key: int, x: FloatArray) -> None:
        """Put a point into the queue."""
        self._results.expect()
        self._tasks.put((key, own_copy(x)))

    def wait(self, timeout: float | None = None) -> list[tuple[int, Outcome]]:
        """Return what is finished."""
        return self._results.take(timeout)

    def finished(self) -> list[tuple[int, Outcome]]:
        """Return what is finished by now."""
        return self._results.take(0.0)

    def close(self, now: bool = False) -> None:
        """End the processes, when they have finished; with ``now``, kill them and what they have started."""
        if now:
            for child in self._children:
                child.let_go()
            for child in self._children:
                child.kill_for_good()
            with contextlib.suppress(queue.Empty):
                while True:
                    self._tasks.get_nowait()
        for _ in self._managers:
            self._tasks.put(None)
        for manager in self._managers:
            if manager.ident is not None:
                manager.join()
        self._managers.clear()
        self._results.expect_nothing()

    def _manage(self, child: Child) -> None:
        """Keep one process busy. Runs in a thread of its own, so that the process waits for nobody."""
        try:
            child.start()
            self._started.put(None)
        except WorkerDied as problem:
            self._started.put(problem)
        for key, x in iter(self._tasks.get, None):
            self._results.report(key, _evaluated(child, key, x))
        child.say_goodbye()


def _evaluated(child: Child, key: int, x: FloatArray) -> Outcome:
    """Return what a point comes to; try again, but not for ever, if the process dies."""
    start = time.perf_counter()
    how = ""
    for _ in range(_LIVES):
        try:
            return child.evaluate(key, x)
        except CannotLoad as reason:
            return Outcome(math.nan, f"a fresh worker process could not load the energy: {reason}", never_ran=True)
        except WorkerDied as death:
            how = str(death)
    return Outcome(math.nan, f"the worker process died ({how}), twice", time.perf_counter() - start)


@dataclass(frozen=True)
class Origin:
    """What every worker process starts from: also the later ones, wherever this process has gone meanwhile."""

    function: bytes
    greeting: bytes
    environment: dict[str, str]
    folder: str

    @classmethod
    def here(cls, evaluate: Evaluate) -> Origin:
        """Return the module path, environment and folder of this process, with the function."""
        environment = dict(os.environ)
        for name in _ONE_THREAD_EACH:
            environment.setdefault(name, "1")
        folder = os.getcwd()
        module_path = [entry for entry in sys.path if isinstance(entry, str)]
        # With this the process finds zhat; it then undoes it, for the programs that the energy starts. Folders of the
        # user's come last: a file there that is called as a module of Python's must not be taken for it.
        absolute = [os.path.join(folder, entry) for entry in module_path]
        environment["PYTHONPATH"] = os.pathsep.join(installed_first(absolute))
        greeting = pickle.dumps((module_path, os.environ.get("PYTHONPATH")))
        return cls(packed(evaluate), greeting, environment, folder)


class Child:
    """One worker process, and the next when it has died. Used by one thread; any may kill it for good."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._process: subprocess.Popen[bytes] | None = None
        # The end of a pipe that the process watches: without it the process ends.
        self._leash: int | None = None
        self._has_loaded = False
        self._ended = False
        # Held while a process is started, killed or buried: a number must not be killed that is no longer its own.
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start a process, and return when it has loaded the function."""
        with self._lock:
            if self._ended:
                raise WorkerDied("the pool was closed")
            try:
                self._process = self._popen()
            except OSError as error:
                raise WorkerDied(f"it could not be started: {error}") from error
        with self._burial():
            self._send(self._origin.greeting)
            self._send(self._origin.function)
            failure = self._receive()
        if failure:
            self._bury()
            raise CannotLoad(failure.decode())
        self._has_loaded = True

    def evaluate(self, key: int, x: FloatArray) -> Outcome:
        """Return what a point comes to; raise `WorkerDied` if the process ends during this."""
        # One that died while it had nothing to do is no fault of this point.
        if self._process is None or self._is_dead():
            self._bury()
            self.start()
        assert self._process is not None
        asked = (self._process.pid, key)
        with self._burial():
            self._send(pickle.dumps((key, x)))
            while True:
                *answered, outcome = pickle.loads(self._receive())
                # Whatever else writes to the pipe, such as a process that the energy forked, speaks for no point.
                if tuple(answered) == asked:
                    return cast(Outcome, outcome)

    def say_goodbye(self) -> None:
        """Let the process end by itself, and end it if it does not."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                self._send(b"")
            self._bury()

    def let_go(self) -> None:
        """Have the process end itself and what it has started, and start no other. Its own thread buries it."""
        with self._lock:
            self._ended = True
            self._drop_leash()

    def kill_for_good(self) -> None:
        """Kill the process that was let go of if it does not end: its energy may hold Python's own lock."""
        # One that has not loaded the function has started no program.
        deadline = time.monotonic() + (_LET_GO if self._has_loaded else 0.0)
        while not self._is_dead() and time.monotonic() < deadline:
            time.sleep(0.005)
        with self._lock:
            if self._process is not None and self._process.returncode is None:
                self._kill_group(self._process)

    def _popen(self) -> subprocess.Popen[bytes]:
        self._has_loaded = False
        watched, self._leash = os.pipe()
        try:
            return subprocess.Popen(
                # Without -P, files in the current folder would hide modules that zhat needs.
                [sys.executable, "-P", "-m", "zhat.evaluate.worker", str(watched)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                cwd=self._origin.folder,
                env=self._origin.environment,
                pass_fds=(watched,),
                # A group of its own, in the same session: programs that the energy starts can be killed with it.
                process_group=0,
            )
        except OSError:
            self._drop_leash()
            raise
        finally:
            os.close(watched)

    def _drop_leash(self) -> None:
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None

    @contextlib.contextmanager
    def _burial(self) -> Iterator[None]:
        """Turn the end of the process into `WorkerDied`."""
        try:
            yield
        except (EOFError, OSError) as error:
            raise WorkerDied(self._bury()) from error

    def _send(self, content: bytes) -> None:
        write_frame(self._pipe("stdin").fileno(), content)

    def _receive(self) -> bytes:
        descriptor = self._pipe("stdout").fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)

            # A program that the energy has started may hold the pipe open after the process has died: the end of the
            # pipe is not enough to go by.
            def read(n: int) -> bytes:
                while not selector.select(_HEARTBEAT):
                    if self._is_dead() and not selector.select(0.0):
                        return b""
                return os.read(descriptor, n)

            return read_frame(read)

    def _pipe(self, name: str) -> IO[bytes]:
        return cast(IO[bytes], getattr(self._process, name))

    def _is_dead(self) -> bool:
        with self._lock:
            return self._process is None or self._process.poll() is not None

    def _bury(self) -> str:
        """Wait for the end of the process, with force if need be, and return how it ended."""
        if self._process is None:
            return "unknown"
        process = self._process
        deadline = time.monotonic() + _GRACE
        while not (ended := self._is_dead()) and time.monotonic() < deadline:
            time.sleep(0.005)
        with self._lock:
            # Even of a process that is gone: the number stays its group's while there is anything left to kill in it.
            self._kill_group(process)
            code = process.wait()
            self._process = None
            self._drop_leash()
        # Its programs are in groups of their own: its supervisor ends them, and holds the pipe until then. No point may
        # be begun again before that.
        _await_end(cast(IO[bytes], process.stdout).fileno(), _GRACE)
        for name in ("stdin", "stdout"):
            with contextlib.suppress(OSError):
                cast(IO[bytes], getattr(process, name)).close()
        return _ending(code) if ended else "it closed its pipes"

    @staticmethod
    def _kill_group(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)


def _await_end(descriptor: int, seconds: float) -> None:
    """Wait until nobody holds the other end of a pipe, but not longer than this many seconds."""
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0.0:
            if selector.select(left) and not os.read(descriptor, 1 << 16):
                return


def _ending(code: int) -> str:
    """Return in words what the exit code of a process says."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by signal {-code}, {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
