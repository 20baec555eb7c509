"""The chart of a pipeline, and sparklines."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pgoutput_construct.demo.freshness import Event, Freshness, Lag, Sample
from pgoutput_construct.demo.picture import bars, median_lags, picture, rates


def watched() -> Freshness:
    """Two tables, one of which was brought up to date once."""
    found = Freshness(Path("log"), Path("tables"))
    found.samples = [Sample(0.2, 0, 0), Sample(0.9, 8, 4), Sample(2.5, 8, 8)]
    found.lags = [Lag(1.0, "public.a", (1.0, 5.0)), Lag(2.0, "public.a", (2.0,)), Lag(2.0, "public.b<c", (9.0,))]
    return found


@pytest.mark.slow
def test_each_batch_of_a_table_is_a_point() -> None:
    """A table with one batch is seen, too; names are text of XML; the same numbers give the same picture."""
    drawn = picture(watched())
    markers = drawn.count("<use ")
    found = watched()
    found.lags.append(Lag(2.2, "public.a", (1.0,)))
    assert picture(found).count("<use ") >= markers + 1
    assert "public.b&lt;c" in drawn and "public.b<c" not in drawn
    assert picture(watched()) == drawn


def test_it_can_be_read_on_any_page() -> None:
    """No background, and no text or line in black or white."""
    assert not re.search(r"(fill|stroke): *#(000000|ffffff)", picture(watched()))


def test_events_are_numbered() -> None:
    """Each has its number at its time and its text at the side, however near they are."""
    found = watched()
    found.events = [Event(1.0, "capture killed"), Event(1.01, "server killed")]
    texts = [element.text for element in ElementTree.fromstring(picture(found)).iter() if element.tag.endswith("text")]
    assert {"1: capture killed", "2: server killed", "1", "2"} <= set(texts)


def test_figures() -> None:
    """Transactions by second, lags over all of a table's transactions, the largest of what shares a block."""
    assert rates(watched()) == [4.0, 0.0, 4.0]
    assert median_lags(watched()) == {"public.a": 2.0, "public.b<c": 9.0}
    assert bars([0.0, 1.0, 2.0], 2) == "▅█" and bars([]) == "" and bars([0.0]) == "▁"
