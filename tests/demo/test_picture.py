"""The chart of a pipeline, and sparklines."""

from pathlib import Path

from pgoutput_construct.demo.freshness import Freshness, Lag, Sample
from pgoutput_construct.demo.picture import bars, median_lags, picture, rates


def watched() -> Freshness:
    """Two tables, one of which was brought up to date once."""
    found = Freshness(Path("log"), Path("tables"))
    found.samples = [Sample(0.2, 0, 0), Sample(0.9, 8, 4), Sample(2.5, 8, 8)]
    found.lags = [Lag(1.0, "public.a", (1.0, 5.0)), Lag(2.0, "public.a", (2.0,)), Lag(2.0, "public.b<c", (9.0,))]
    return found


def test_each_batch_of_a_table_is_a_point() -> None:
    """A table with one batch is seen, too; names are text of XML."""
    drawn = picture(watched())
    assert drawn.count("<circle") == 2 * 3 + 3
    assert "public.b&lt;c" in drawn and "public.b<c" not in drawn


def test_figures() -> None:
    """Transactions by second, lags over all of a table's transactions, the largest of what shares a block."""
    assert rates(watched()) == [4.0, 0.0, 4.0]
    assert median_lags(watched()) == {"public.a": 2.0, "public.b<c": 9.0}
    assert bars([0.0, 1.0, 2.0], 2) == "▅█" and bars([]) == "" and bars([0.0]) == "▁"
