"""python -m tools.faults.child: one capture in a process of its own, which can be killed; its argument is JSON."""

import json
import sys
from typing import Any

from pgoutput_construct.postgres import SegmentLimits, capture
from pgoutput_construct.postgres._snapshot import copy_plans
from pgoutput_construct.wire import Lsn

__all__ = ["main"]


def main(given: dict[str, Any]) -> None:
    """Capture with ``given``, the keywords of capture(): ``limits`` are a dictionary, ``until_lsn`` a text or None.

    ``chunk_pages`` are the pages of a chunk of a table copy, if they are given.
    """
    limits = SegmentLimits(**given.pop("limits"))
    until = given.pop("until_lsn")
    copy_plans.CHUNK_PAGES = given.pop("chunk_pages", copy_plans.CHUNK_PAGES)  # type: ignore[misc]
    capture(given.pop("dsn"), **given, limits=limits, until_lsn=None if until is None else Lsn(until))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
