"""One BLAS thread while zhat computes: its matrices are small, and results then depend on no machine's cores.

On two cores, threads that wait for each other made a run seven times slower. The energy is called outside of this, with
all the threads that it may have.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Finding the libraries takes milliseconds: once is enough, as numpy and scipy are loaded by now.
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which linear algebra runs on one thread of this process."""
    limit: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limit
