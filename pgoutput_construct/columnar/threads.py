"""Work on several threads at once, answers in order. Kernels release the interpreter's lock."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

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

    The caller's thread is one of these threads. An error of ``work`` is raised in its place.
    """
    if threads == 1:
        for item in items:  # not map: a StopIteration of work would end it, as if there were no more
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
    """Return the answer for the first item; until it is there, do what no other thread has begun."""
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
