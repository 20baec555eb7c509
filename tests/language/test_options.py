"""The rules about parameters, and about the states and options that set them."""

import inspect
from collections.abc import Iterator

import click
import pytest

import pgoutput_construct as pgo
from pgoutput_construct import SpecError, testing
from pgoutput_construct.changelog import SCHEMA, LogOptions
from pgoutput_construct.changelog._segment.block import Block
from pgoutput_construct.cli.commands.build_command import build_command
from pgoutput_construct.cli.commands.capture_command import capture_command
from pgoutput_construct.cli.commands.decode_command import decode_command
from pgoutput_construct.cli.commands.inspect_command import inspect_command
from pgoutput_construct.cli.commands.tail_command import tail_command
from pgoutput_construct.columnar import BatchDecoder, index_batch
from pgoutput_construct.postgres import capture
from pgoutput_construct.wire import options
from pgoutput_construct.wire.engine import engine, parse_prefix
from pgoutput_construct.wire.json_lines import KEYS
from pgoutput_construct.wire.protocol import OPTIONS
from pgoutput_construct.wire.spec_metadata import Option
from pgoutput_construct.wire.trace import trace
from tests.language.sound import assert_refused
from tools.generate.python.protocol import emit_protocol
from tools.language import load_text
from tools.language.names import LINE_KEYS, RESERVED_OPTIONS, RESERVED_PARAMETERS
from tools.language.rules import check_together

SOUND = """\
protocol: demo
title: Demo
source: nowhere
versions:
  - {version: 1, server: 10}
  - {version: 2, server: 14}
parameters:
  proto_version: {type: int}
  in_stream: {type: bool}
  wide: {type: bool}
  deep: {type: bool}
states:
  - {name: idle}
  - {name: inside, sets: in_stream}
messages:
  - name: First
    in: [idle]
    enters: inside
    option: streams
    blocks:
      - type: header
        fields:
          - {field: Byte1('F'), name: tag}
          - {field: Int8, name: extra, when: wide, since: 2}
          - {field: Int8, name: more, when: deep, since: 2}
options:
  - {name: proto_version, type: number, server: 10}
  - {name: depth, type: switch, server: 14, since: 2, sets: deep}
  - name: streams
    server: 10
    values:
      - {name: never, server: 10}
      - {name: always, server: 14, since: 2, sets: [wide, deep]}
"""

BROKEN = {
    "an option with values called like a parameter": (
        "- name: streams",
        "- name: wide",
        "has values, and a parameter has its name",
    ),
    "a parameter that nothing sets": ("  deep:", "  lost: {type: bool}\n  deep:", "nothing sets the parameter 'lost'"),
    "a parameter set from two sides": ("sets: in_stream", "sets: [in_stream, wide]", "states and options set"),
    "a state that nothing enters": (
        "  - {name: idle}\n",
        "  - {name: idle}\n  - {name: far}\n",
        "broken.yaml:14: no message",
    ),
    "a state twice": ("  - {name: idle}\n", "  - {name: idle}\n  - {name: idle}\n", "two states are called 'idle'"),
    "a number next to the version": ("wide: {type: bool}", "wide: {type: int}", "is an int"),
    "a first state that sets": ("- {name: idle}", "- {name: idle, sets: in_stream}", "the first state, idle, sets"),
    "a value that sets what is no parameter": ("sets: [wide, deep]", "sets: [wide, tall]", "not a bool parameter"),
    "a switch that sets what is no parameter": ("sets: deep}", "sets: tall}", "not a bool parameter"),
    "an option twice": ("name: depth", "name: streams", "two options are called"),
    "an option without type and values": ("type: number, ", "", "no values and no type"),
    "an option with type and values": (
        "    server: 10\n    values",
        "    server: 10\n    type: names\n    values",
        "values",
    ),
    "a number that sets": ("type: number, server", "type: number, sets: wide, server", "is not a switch"),
    "an option named as an argument": ("name: depth", "name: payload", "programs cannot use"),
    "an option named as a state's parameter": ("name: depth", "name: in_stream", "programs cannot use"),
    "an option named as a word of Python": ("name: depth", "name: lambda", "programs cannot use"),
    "an option named as an argument of a decoder": ("name: depth", "name: threads", "programs cannot use"),
    "an option named as a key of JSON lines": ("name: depth", "name: line", "programs cannot use"),
    "a parameter named as a column of the change log": ("  wide:", "  payload:", "generated code uses"),
    "a field named as a place": ("name: extra", "name: seq", "another key of its JSON line"),
    "a field named as an option": ("name: extra", "name: streams", "another key of its JSON line"),
    "a field named as a state": ("name: extra", "name: in_stream", "another key of its JSON line"),
    "a value twice": ("name: always", "name: never", "values of the option 'streams' are the same"),
    "a default that sets": ("{name: never, server: 10}", "{name: never, server: 10, sets: wide}", "its default"),
    "a default of a later version": ("{name: never, server: 10}", "{name: never, server: 10, since: 2}", "its default"),
    "a value older than its option": (
        "  - name: streams\n    server: 10\n    values:\n      - {name: never, server: 10}\n",
        "  - name: streams\n    server: 14\n    since: 2\n    values:\n      - {name: never, server: 10}\n"
        "      - {name: old, server: 14, since: 1}\n",
        "the value 'old' has since: 1, and its option since: 2",
    ),
    "a message of an unknown option": ("option: streams", "option: rivers", "not an option that can be off"),
    "a message of a number": ("option: streams", "option: proto_version", "not an option that can be off"),
    "a version that is none": ("since: 2, sets: deep", "since: 3, sets: deep", "not a protocol version"),
}


def test_sound() -> None:
    """Options that determine layouts are distinguished from others, as are the parameters of states."""
    spec = load_text(SOUND)
    assert [option.name for option in spec.layout_options] == ["depth", "streams"]
    assert [parameter.name for parameter in spec.state_parameters] == ["in_stream"]


def test_a_switch_can_bring_a_message() -> None:
    """A switch that sets nothing decides what comes, as soon as a message comes only with it."""
    spec = load_text(SOUND.replace("type: switch, server: 14, since: 2, sets: deep}", "type: switch, server: 14}"))
    assert [option.name for option in spec.layout_options] == ["streams"]
    spec = load_text(SOUND.replace("option: streams", "option: depth").replace(", sets: deep}", "}"))
    assert [option.name for option in spec.layout_options] == ["depth", "streams"]


def test_a_parameter_on_which_nothing_depends() -> None:
    """It is refused, unless a specification depends on it that carries this one."""
    check_together([load_text(SOUND, "whole.yaml")])
    with pytest.raises(
        SpecError, match=r"^broken\.yaml:11: nothing depends on the parameter 'deep'\. Write when: deep "
    ):
        check_together([load_text(SOUND.replace(", when: deep, since: 2}", ", since: 2}"), "broken.yaml")])


def test_versions_with_a_gap() -> None:
    """A server that speaks a version speaks all before it."""
    text = SOUND.replace("version: 2", "version: 3").replace("since: 2", "since: 3")
    with pytest.raises(SpecError, match=r"^gap\.yaml:6: version 3 follows 1: there is a gap .*\. Call it 2, or add"):
        check_together([load_text(text, "gap.yaml")])


def test_values_need_the_version_of_their_option() -> None:
    """All values but the default, which is what holds without the option."""
    text = SOUND.replace("server: 10\n    values", "server: 14\n    since: 2\n    values")
    text = text.replace("{name: always, server: 14, since: 2, ", "{name: always, server: 14, ")
    assert [value.since for value in load_text(text).options[2].values] == [None, 2]


def test_numbers_and_names_need_their_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """An option without values keeps its version in the generated table, and is refused before it."""
    more = "  - {name: limit_rows, type: number, server: 14, since: 2}\n  - {name: filters, type: names, server: 10}\n"
    text = emit_protocol(load_text(SOUND + more))
    assert '"limit_rows": Option(None, {}, 14, "", 2)' in text and '"filters": Option((), {}, 10, "", 1)' in text
    known = {"limit_rows": Option(None, {}, 14, "", 2), "filters": Option((), {}, 15, "", 3)}
    monkeypatch.setattr(options, "OPTIONS", {**OPTIONS, **known})
    assert [*options.problems({"proto_version": 1, "limit_rows": 7, "filters": ("a",)})] == [
        "limit_rows needs proto_version 2 or newer, not 1",
        "filters needs proto_version 3 or newer, not 1",
    ]
    assert [*options.problems({"proto_version": 1, "limit_rows": None, "filters": ()})] == []
    assert [*options.problems({"proto_version": 3, "limit_rows": 7, "filters": ("a",)})] == []


def _words_beside_options() -> Iterator[str]:
    """Yield the names of arguments, attributes and switches that stand next to options."""
    takers = (
        pgo.parse,
        pgo.build,
        pgo.Session,
        parse_prefix,
        engine,
        trace,
        options.options,
        index_batch,
        BatchDecoder,
    )
    more = (testing.messages, testing.streams, capture, LogOptions.__init__, Block.from_payloads)
    for taker in (*takers, *more):
        arguments = inspect.signature(taker).parameters.values()
        yield from (argument.name for argument in arguments if argument.kind is not argument.VAR_KEYWORD)
    yield from (*dir(LogOptions), *dir(options.ParseOptions))  # type: ignore[attr-defined]
    for command in (build_command, capture_command, decode_command, inspect_command, tail_command):
        yield from inspect.signature(inspect.unwrap(command.callback or command)).parameters
        for parameter in command.get_params(click.Context(command)):
            yield from (parameter.name or "", *(name[2:] for name in parameter.opts if name.startswith("--")))


def test_reserved_options_are_the_words_beside_options() -> None:
    """No word is missing that an option would collide with, and none is refused for nothing."""
    known = {*OPTIONS, *options.STATE_PARAMETERS}
    words = {word.replace("-", "_") for word in _words_beside_options() if not word.startswith("_")}
    assert (words | KEYS) - known == RESERVED_OPTIONS
    assert LINE_KEYS | {*options.LAYOUT_OPTIONS, *options.STATE_PARAMETERS} == KEYS
    assert {*SCHEMA.names} - known <= RESERVED_PARAMETERS


@pytest.mark.parametrize("name", BROKEN)
def test_broken(name: str) -> None:
    """Each rule names file, line and remedy."""
    assert_refused(*BROKEN[name], SOUND)
