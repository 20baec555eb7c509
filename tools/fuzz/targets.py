"""The fuzzing targets by name: a function of bytes, and the seeds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from tools.fuzz import file_targets, log_targets, message_targets, whole_logs

__all__ = ["TARGETS", "Target", "seeds"]


class Target(NamedTuple):
    """One reader of bytes, and how it is fuzzed."""

    read: Callable[[bytes], None]
    """Raises for a finding: any error that is not one of the package's."""
    longest: int
    """The maximum size of an input, in bytes."""
    covered: Sequence[str]
    """The modules whose coverage is reported."""


_MESSAGE: Final = ("codec", "codec_runtime", "definitions", "engine", "structures", "primitives", "jsonable", "trace")
_WIRE: Final = "pgoutput_construct.wire."
_LOG: Final = "pgoutput_construct.changelog."
_SEGMENT: Final = f"{_LOG}_segment."
_COMMANDS: Final = "pgoutput_construct.cli.commands."

TARGETS: Final[Mapping[str, Target]] = {
    "message": Target(
        message_targets.read_message,
        2048,
        [f"{_WIRE}{name}" for name in _MESSAGE],
    ),
    "frame": Target(
        message_targets.read_frame, 512, [f"{_WIRE}{name}" for name in ("frame_codec", "frame_definitions")]
    ),
    "connection": Target(
        message_targets.read_connection,
        512,
        [f"{_WIRE}{name}" for name in ("connection_codec", "connection_definitions", "spec_engines")],
    ),
    "stream": Target(
        message_targets.read_stream,
        8192,
        ["pgoutput_construct.columnar.batches", "pgoutput_construct.columnar.scopes",
         "pgoutput_construct.stream.relations", "pgoutput_construct.stream.state", "pgoutput_construct.stream.session"],
    ),
    "file": Target(file_targets.read_file, 8192, ["pgoutput_construct.cli._input"]),
    "lines": Target(file_targets.read_lines, 4096, [f"{_WIRE}json_lines", f"{_WIRE}jsonable"]),
    "inspect": Target(
        file_targets.inspect_file, 8192,
        [f"{_COMMANDS}{name}" for name in ("inspect_command", "_inspect_rows", "_inspect_picture")],
    ),
    "segment": Target(
        log_targets.read_segment_file, 1 << 16,
        [f"{_SEGMENT}{name}" for name in ("footer", "segment_reader", "segment_schema")],
    ),
    "footer": Target(log_targets.read_footer_text, 4096, [f"{_SEGMENT}footer", f"{_LOG}_index.listing"]),
    "index": Target(log_targets.read_index, 1 << 16, [f"{_SEGMENT}segment_index", f"{_SEGMENT}block"]),
    "manifest": Target(
        log_targets.read_manifest_stream, 1 << 16, [f"{_LOG}_index.{name}" for name in ("manifest", "log_index")]
    ),
    "notes": Target(
        log_targets.read_notes, 1024,
        [f"{_LOG}_notes.confirmation_note", f"{_SEGMENT}prune_note", f"{_LOG}registry", f"{_SEGMENT}events"],
    ),
    "log": Target(whole_logs.read_log, 16, [f"{_SEGMENT}{name}" for name in ("footer", "events", "size_limits")]),
}  # fmt: skip
"""Each of them runs in a process of its own."""


def seeds(name: str) -> list[bytes]:
    """Return the seeds of a target."""
    known = {**message_targets.SEEDS, **file_targets.SEEDS, **log_targets.SEEDS, **whole_logs.SEEDS}
    return list(known[name]())
