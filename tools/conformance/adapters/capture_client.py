"""Our capture: it writes a change log, and reports nothing itself."""

from typing import Any, Final

from pgoutput_construct.changelog import SegmentLimits
from pgoutput_construct.conformance.conformance_client import ClientTask
from pgoutput_construct.postgres import capture
from pgoutput_construct.postgres._frames import Gatherer
from tools.conformance.forked import Report

__all__ = ["LOG", "run"]

LOG: Final = "log"
"""The directory of the change log, in that of a case."""

Gatherer()  # loads its kernels, once for all processes that are forked from this one


def run(task: ClientTask, report: Report) -> None:
    """Capture the slot."""
    options: Any = dict(task.options)
    capture(
        task.dsn,
        task.slot,
        [task.publication],
        task.directory / LOG,
        new_log=True,
        limits=SegmentLimits(seconds=0.05),
        status_interval=1.0,
        reconnect_seconds=5.0,
        handle_signals=False,
        **options,
    )
