"""Work on several threads at once, answers in order. Kernels release the interpreter's lock."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from pgoutput_construct.errors import PgoutputError

__all__ = ["checked", "in_order"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")

# New threads would have no memory yet: they take it from the kernel page by page, under one lock for all threads.
_pool = cache(ThreadPoolExecutor)
os.register_at_fork(after_in_child=_pool.cache_clear)


def checked(threads: int) -> int:
    """Return a number of threads; raise PgoutputError for what is none."""
    if type(threads) is not int or threads < 1:
        raise PgoutputError(f"threads must be a number from 1, not {threads!r:.40}")
    return threads


def in_order(work: Callable[[Item], Answer], items: Iterable[Item], threads: int) -> Iterator[Answer]:
    """Yield what ``work`` returns for each item; at most two items a thread are ahead, so that memory stays flat.

    An error of ``work`` is raised in its place.
    """
    if threads == 1:
        yield from map(work, items)
        return
    pool, ahead = _pool(threads), deque[Future[Answer]]()
    try:
        for item in items:
            ahead.append(pool.submit(work, item))
            if len(ahead) > 2 * threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        for future in ahead:
            future.cancel()
