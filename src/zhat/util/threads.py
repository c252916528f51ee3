"""How zhat computes, whatever its process is set to: on one BLAS thread, and with NumPy's own way with errors.

Its matrices are small, and results then depend on no machine's cores: on two, threads that wait for each other made a
run seven times slower. And numbers that vanish are ordinary here: ``numpy.seterr(all="raise")``, with which users look
for mistakes of their own, would make errors of them. The energy is called outside of this, as the user has it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Finding the libraries takes milliseconds: once is enough, as numpy and scipy are loaded by now.
    return ThreadpoolController()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Provide a context in which linear algebra has one thread of this process, and errors are NumPy's by default."""
    with _controller().limit(limits=1, user_api="blas"), default_errors():
        yield


def default_errors() -> np.errstate:
    """Return a context in which NumPy, and SciPy with it, meets what is no ordinary number as it does by default."""
    return np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
