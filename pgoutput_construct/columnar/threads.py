"""Runs work on several threads and yields the results in order. Kernels release the GIL."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

from pgoutput_construct.errors import PgoutputError

__all__ = ["checked_threads", "in_order"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")

# Threads are reused: a new one would take its memory from the kernel page by page, under one lock for the process.
_pool = cache(ThreadPoolExecutor)
os.register_at_fork(after_in_child=_pool.cache_clear)


def checked_threads(threads: int) -> int:
    """Return a number of threads; raise PgoutputError unless it is an int of at least 1."""
    if type(threads) is not int or threads < 1:
        raise PgoutputError(f"threads must be an int of at least 1, not {threads!r:.40}")
    return threads


def in_order(work: Callable[[Item], Answer], items: Iterable[Item], threads: int) -> Iterator[Answer]:
    """Yield the result of ``work`` for each item, in the order of the items.

    An exception of ``work`` is raised when its item's turn comes.

    Args:
        work: The function; it runs on any of the threads.
        items: Consumed lazily: at most two items per thread are ahead, which bounds memory.
        threads: The number of threads, including the caller's.
    """
    if threads == 1:
        for item in items:  # not map: a StopIteration raised by work would end it silently
            yield work(item)
        return
    pool, ahead = _pool(threads - 1), deque[_Begun[Item, Answer]]()
    try:
        for item in items:
            ahead.append(_Begun(item, pool.submit(work, item)))
            if len(ahead) > 2 * threads:
                yield _first(work, ahead)
        while ahead:
            yield _first(work, ahead)
    finally:
        for each in ahead:
            each.answer.cancel()


@dataclass
class _Begun(Generic[Item, Answer]):
    item: Item
    answer: Future[Answer]


def _first(work: Callable[[Item], Answer], ahead: deque[_Begun[Item, Answer]]) -> Answer:
    """Return the result for the first item; while waiting for it, work on items that no other thread has started."""
    for each in ahead:
        if ahead[0].answer.done():
            break
        if each.answer.cancel():
            each.answer = Future()
            try:
                each.answer.set_result(work(each.item))
            except Exception as error:
                each.answer.set_exception(error)
    return ahead.popleft().answer.result()
