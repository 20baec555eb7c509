"""Runs functions in background threads for the duration of a block."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

__all__ = ["in_background"]

_SECONDS = 300.0


@contextmanager
def in_background(*work: Callable[[threading.Event], Any]) -> Iterator[tuple[Future[Any], ...]]:
    """Run functions, each in a thread, while a block runs.

    Errors of the functions are raised at the end of the block, unless the block itself raised.

    Args:
        work: The functions; each is passed an event that is set when the block ends.

    Raises:
        TimeoutError: A function is still running five minutes after the block.
    """
    done, pool = threading.Event(), ThreadPoolExecutor(len(work), "in_background")
    futures = tuple(pool.submit(each, done) for each in work)
    try:
        yield futures
    finally:
        done.set()
        _, late = wait(futures, _SECONDS)
        pool.shutdown(wait=not late)
    if late:
        raise TimeoutError(f"{len(late)} background threads are still running {_SECONDS:.0f} seconds after the block")
    for future in futures:
        future.result()
