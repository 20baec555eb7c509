"""Work in threads beside a block of a test or a fault run."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

__all__ = ["in_background"]

_SECONDS = 60.0


@contextmanager
def in_background(*work: Callable[[threading.Event], Any]) -> Iterator[tuple[Future[Any], ...]]:
    """Run functions, each in a thread, while a block runs; the event that each is given says that the block is over.

    What one of them raises is raised at the end of the block, unless the block itself raised. TimeoutError: one of
    them goes on for a minute after the block.
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
        raise TimeoutError(f"{len(late)} threads go on after the block that they were beside")
    for future in futures:
        future.result()
