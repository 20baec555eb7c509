"""What may differ from one segment to the next: how changes are sent, and with an event the slot and the timeline."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import pgoutput_construct as pgo
from pgoutput_construct.changelog import ChangeLog, LogWriter, Position
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.changelog._segment.events import OPTIONS_CHANGED
from pgoutput_construct.columnar.descriptions import OUTSIDE
from tests.spark.logs import log_options

MESSAGE = pgo.build(pgo.Message(None, 0, pgo.Lsn(1), "p", b""))
OPTIONS = replace(log_options(), timeline=1)


def write(directory: Path, event: bool, **changes: Any) -> None:
    """Write a segment under some options, and one under changed ones, with or without an event that says so."""
    for options in (OPTIONS, replace(OPTIONS, **changes)):
        with LogWriter(directory) as writer:
            writer.use(options, said=changes)
            if event and options is not OPTIONS:
                writer.append_event(OPTIONS_CHANGED, pgo.Lsn(0), **{name: [None, changes[name]] for name in changes})
            writer.append(Block.from_payloads([MESSAGE], [0], [0], options.layout(), {}, [OUTSIDE]))
            writer.publish(Position())


@pytest.mark.parametrize("changes", [{"slot": "other"}, {"timeline": 2}])
def test_changes_that_need_an_event(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Another slot or timeline without an event is another log; with an event the log continues."""
    write(tmp_path / "said", True, **changes)
    log = ChangeLog(tmp_path / "said")
    assert [segment.options.changes(OPTIONS) != {} for segment in log.segments] == [False, True]
    assert [event.details for event in log.events()] == [{name: [None, value] for name, value in changes.items()}]
    assert [entry.seq for entry in log] == [0, 2] and len(log) == 2
    write(tmp_path / "silent", False, **changes)
    with pytest.raises(pgo.ChangeLogError, match=f"not of the same log.*{next(iter(changes))}: "):
        ChangeLog(tmp_path / "silent")


def test_changes_that_need_no_event(tmp_path: Path) -> None:
    """Publications, protocol version and the rest: each segment has its own."""
    changes: dict[str, Any] = {"publications": ("p", "q"), "proto_version": 4, "binary": True, "server_version": 190000}
    write(tmp_path, False, **changes)
    assert [segment.options for segment in ChangeLog(tmp_path).segments] == [OPTIONS, replace(OPTIONS, **changes)]


def test_another_cluster_is_never_the_same_log(tmp_path: Path) -> None:
    """Whatever events say."""
    for name in ("system_identifier", "database"):
        with pytest.raises(pgo.ChangeLogError, match=f"{name}: .*use those, or another directory"):
            write(tmp_path / name, True, **{name: "other"})
