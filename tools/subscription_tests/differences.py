"""Tests and files of PostgreSQL's subscription tests that cannot pass through a publisher, by design.

A file that does not apply is run without anything between publisher and subscriber, so that it is known to run at all.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

__all__ = ["ends_early", "inapplicable", "intended"]

_COPIED_AGAIN: Final = "rows change that the stream does not send: the capture copies the table again"
_NO_COPY: Final = "looks at table synchronization by COPY; copies of tables come as inserts of the stream"

_INTENDED: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "013_partition": [
        (r"\d+ truncate of .* NOT replicated", f"a partition is truncated by itself, so {_COPIED_AGAIN}"),
    ],
    "024_add_drop_pub": [
        (
            "3 check initial data is copied to subscriber",
            "a table that is copied again is emptied first: no row is twice",
        ),
    ],
    "030_origin": [
        (r"\d+ (Create|Refresh) .* origin .*", "it looks for a warning about copy_data, and nothing is copied so"),
    ],
}
"""By file: the numbers and names of tests, as regular expressions, and why the result is another one."""
_ENDS_EARLY: Final[Mapping[str, tuple[int, str]]] = {
    "008_diff_schema": (18, f"{_NO_COPY}: it waits for an error about a table without rows"),
    "014_binary": (16, f"{_NO_COPY}: it waits for errors of that"),
    "015_stream": (16, "it waits for changes of a transaction that still runs: they are served when it has ended"),
    "018_stream_subxact_abort": (16, "it waits for a transaction that is rolled back: nothing of one is served"),
    "024_add_drop_pub": (18, "it subscribes to a publication that does not exist: a capture refuses that"),
    "033_run_as_table_owner": (16, f"{_NO_COPY}: its last test grants what that needs, and not what a stream does"),
}
"""By file: the release since which it ends at a test that cannot pass, and why."""
_INAPPLICABLE: Final[Mapping[str, tuple[int, str]]] = {
    "026_stats": (15, f"{_NO_COPY}: it counts errors of that"),
    "029_on_error": (15, f"{_NO_COPY}: it takes the first error of a transaction in the log for that of its own"),
}
"""By file: the release since which it does not apply, and why."""


def intended(file: str, number: int, test: str) -> str:
    """Return why a test of a file, of this number and name, fails by design; "" where it should pass."""
    named = f"{number} {test}"
    return next((reason for pattern, reason in _INTENDED.get(file, ()) if re.fullmatch(pattern, named)), "")


def ends_early(file: str, version: int) -> str:
    """Return why a file of a release ends before its end, by design; "" where it should come to it."""
    return _of_release(_ENDS_EARLY, file, version)


def inapplicable(file: str, version: int) -> str:
    """Return why a file of a release does not apply; "" where it does."""
    return _of_release(_INAPPLICABLE, file, version)


def _of_release(reasons: Mapping[str, tuple[int, str]], file: str, version: int) -> str:
    since, reason = reasons.get(file, (0, ""))
    return reason if version >= since else ""
