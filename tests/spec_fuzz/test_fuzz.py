"""Any specification that the language allows gives engines that agree; any other is a SpecError."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from pgoutput_construct import SpecError
from tests.spec_fuzz.broken import broken_specifications
from tests.spec_fuzz.framed import framed_specifications
from tests.spec_fuzz.framed_agreement import explore_framed, follow_framed
from tests.spec_fuzz.fuzz import compare_compiled, explore, follow
from tests.spec_fuzz.package import generated, texts
from tests.spec_fuzz.specifications import as_yaml, specifications
from tests.spec_fuzz.vocabulary import asserted_by, vocabulary, words_of
from tools.language import load_text

EXAMPLES = settings().max_examples
LONG = EXAMPLES > 1000
"""Whether the profile is tools/soak's."""


@pytest.mark.slow
@settings(max_examples=max(EXAMPLES // 20, 50))
@given(specifications(), st.data())
def test_engines_agree_on_any_specification(data: dict[str, Any], draw: st.DataObject) -> None:
    """Definitions, codec, kernels, strategies and tables of fields agree on messages, and on bytes that are none."""
    text = as_yaml(data)
    try:
        spec = load_text(text, "fuzzed.yaml")
    except SpecError:
        return
    follow(spec, text, draw)


@pytest.mark.slow
@settings(max_examples=max(EXAMPLES // 20, 5))
@given(framed_specifications(), st.data())
def test_engines_agree_on_messages_of_any_connection(data: dict[str, Any], draw: st.DataObject) -> None:
    """Definitions, codec and the reader of a connection agree on messages with a length."""
    try:
        spec = load_text(as_yaml(data), "fuzzed.yaml")
    except SpecError:
        return
    follow_framed(spec, draw)


def test_every_word_of_the_language_is_asserted() -> None:
    """Tables, pages or layouts are held against each word of the schema."""
    assert set().union(*asserted_by().values()) == vocabulary()


@pytest.mark.long
def test_every_word_of_the_language_is_used() -> None:
    """Of the specifications that are drawn and that the language accepts, some use each word of its schema.

    The rarest words are in one of 300; what a seed leaves out, another one of 20 has.
    """
    used: set[str] = set()

    @settings(max_examples=400, database=None, phases=[Phase.generate], deadline=None)
    @given(st.one_of(*[specifications()] * 5, framed_specifications()))
    def count(data: dict[str, Any]) -> None:
        words = words_of(data)
        if words.keys() - used:
            with suppress(SpecError):
                load_text(as_yaml(data))
                used.update(words)

    for number in range(20):
        seed(number)(count)()
        if vocabulary() <= used:
            break
    assert vocabulary() - used == set()


@settings(max_examples=max(EXAMPLES // 20, 5))
@given(broken_specifications(), st.data())
def test_broken_specification_is_an_error_or_generates(data: dict[str, Any], draw: st.DataObject) -> None:
    """What the language refuses is a SpecError with its place; all that it accepts can be imported, and agrees."""
    try:
        spec = load_text(as_yaml(data), "fuzzed.yaml")
    except SpecError as error:
        assert str(error).startswith("fuzzed.yaml:")
        return
    with generated(spec) as package:
        if spec.framed:
            explore_framed(package, draw)


@pytest.mark.slow
@settings(max_examples=max(EXAMPLES // 50, 1))
@given(specifications(), st.data())
def test_generated_text_is_tidy(data: dict[str, Any], draw: st.DataObject) -> None:
    """Formatted modules say the same as those that the other tests take as they are."""
    try:
        spec = load_text(as_yaml(data))
    except SpecError:
        return
    assert texts(spec, tidy=True).keys() == texts(spec).keys()
    with generated(spec, tidy=True) as package:
        explore(package, draw)


@pytest.mark.skipif(not LONG, reason="numba takes seconds for each: tools/soak runs it")
@settings(max_examples=max(EXAMPLES // 1000, 1))
@given(specifications(), st.data())
def test_compiled_kernels_agree(data: dict[str, Any], draw: st.DataObject) -> None:
    """numba compiles the kernels of any specification, and they accept what the definitions accept."""
    try:
        spec = load_text(as_yaml(data))
    except SpecError:
        return
    with generated(spec, compiled=True) as package:
        compare_compiled(package, draw)
