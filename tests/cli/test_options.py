"""Options that decide layouts: derived from the specification, and named on the command line as it spells them."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

import pgoutput_construct as pgo
from pgoutput_construct.cli import _options as options
from pgoutput_construct.cli._options import (
    as_arguments,
    choose,
    first_options_in,
    in_arguments,
    layout_options,
    state_options,
)
from pgoutput_construct.wire.protocol import OPTIONS
from pgoutput_construct.wire.spec_metadata import Option, OptionValue
from tests.cli.conftest import Run

BINARY = Option(False, {False: OptionValue(14, 1), True: OptionValue(14, 1)}, 14, "Whether values are binary.")
SHAPE = Option("round", {"round": OptionValue(20, 5), "flat": OptionValue(20, 5)}, 20, "The shape.")


def test_new_options_of_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch and an option with values, added to the tables alone, are options of every command."""
    monkeypatch.setattr(options, "OPTIONS", {**OPTIONS, "fast": BINARY, "shape": SHAPE})
    monkeypatch.setattr(options, "LAYOUT_OPTIONS", ("proto_version", "fast", "shape"))
    monkeypatch.setattr(options, "STATE_PARAMETERS", ("in_stream", "paused"))
    got: dict[str, Any] = {}

    @click.command
    @layout_options("as given")
    @state_options
    def command(**arguments: Any) -> None:
        got.update(arguments)

    invoke = CliRunner().invoke
    assert invoke(command, ["--fast", "--shape", "flat", "--outside-stream", "--paused"]).exit_code == 0
    assert got == {"given": {"fast": True, "shape": "flat"}, "states": {"in_stream": False, "paused": True}}
    assert invoke(command, ["--no-fast", "--no-paused"]).exit_code == 0
    assert got == {"given": {"fast": False}, "states": {"paused": False}}
    assert invoke(command, ["--shape", "square"]).exit_code == 2
    help_text = " ".join(invoke(command, ["--help"]).output.split())
    assert "The option shape of START_REPLICATION: the shape. [default: as given, else round]" in help_text
    assert as_arguments({"fast": False, "shape": "flat", "paused": True}) == "--no-fast --shape flat --paused"


def test_given_options_override() -> None:
    """Options of the command line win over those of the input, and these over PostgreSQL's defaults."""
    known = {"proto_version": 4, "streaming": "parallel", "note": "no option"}
    assert choose({}) == {"proto_version": 1, "streaming": "off"}
    assert choose({}, known) == {"proto_version": 4, "streaming": "parallel"}
    assert choose({"streaming": "on"}, known) == {"proto_version": 4, "streaming": "on"}
    with pytest.raises(pgo.PgoutputError):
        choose({"streaming": "on"})


def test_the_first_options_with_a_state() -> None:
    """Streams came with protocol version 2 and the option streaming; no state needs nothing."""
    assert first_options_in({"in_stream": True}) == {"proto_version": 2, "streaming": "on"}
    assert first_options_in({"in_stream": False}) == first_options_in({}) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("streaming='on' needs proto_version 2 or newer", "--streaming on needs --proto-version 2 or newer"),
        ("proto_version=2, streaming='parallel'", "--proto-version 2 --streaming parallel"),
        ("with in_stream=True it is one", "with --in-stream it is one"),
        ("with in_stream=False it is one", "with --outside-stream it is one"),
        ("proto_version must be one of [1, 2], not 9", "proto_version must be one of [1, 2], not 9"),
        ("the option streaming is 'on'", "the option streaming is 'on'"),
    ],
)
def test_errors_name_command_line_options(text: str, said: str) -> None:
    """Keywords with a value become options; names alone, as in the header of a file, stay as they are."""
    assert in_arguments(text) == said


FRAME = pgo.build_frame(pgo.XLogData(pgo.Lsn(1), pgo.Lsn(2), pgo.Timestamp(3), b"E"))
STREAMED = bytes.fromhex("490000031d000040074e0001740000000161")


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (["decode"], FRAME.hex().encode(), "this is an XLogData frame: pgoutput inspect --frame shows it"),
        (["inspect", "--frame", "4f" + "00" * 9], b"", "Origin is a message: leave out --frame"),
        (
            ["inspect", "--proto-version", "2", "--streaming", "on", STREAMED.hex()],
            b"",
            "with --in-stream these bytes are a valid Insert",
        ),
    ],
)
def test_the_likely_mistake(run: Run, arguments: list[str], stdin: bytes, said: str) -> None:
    """What Python's errors advise is said in terms of commands."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 1 and said in result.stderr, result.stderr
