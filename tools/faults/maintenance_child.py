"""python -m tools.faults.maintenance_child: one compaction or prune, to be killed; its argument is JSON."""

import json
import sys
from typing import Any

from pgoutput_construct.changelog.compact import CompactionLimits, compact
from pgoutput_construct.changelog.prune import prune
from pgoutput_construct.wire import Lsn

__all__ = ["BEGUN", "main"]

BEGUN = b"begun\n"
"""What it writes when all that it needs is loaded."""


def main(given: dict[str, Any]) -> None:
    """Compact the log in ``directory`` into segments of ``rows``, or prune it ``before`` an LSN where one is given."""
    sys.stdout.buffer.write(BEGUN)
    sys.stdout.buffer.flush()
    if given["before"] is None:
        compact(given["directory"], CompactionLimits(rows=given["rows"], least=2, grace=0.2))
    else:
        prune(given["directory"], Lsn(given["before"]), states=False)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
