"""Row by row: the parts of a table whose checksums differ."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from pyspark.sql import DataFrame

from pgoutput_construct.columnar.row_checksums import Division
from pgoutput_construct.spark.verifying.parts import digests, names_of, rows_of
from pgoutput_construct.spark.verifying.report import Difference
from pgoutput_construct.spark.verifying.source import SourceTable

__all__ = ["EXAMPLES", "compare_part"]

EXAMPLES: Final = 10
"""How many rows of a part are shown."""

Key: TypeAlias = tuple[str, ...]
Texts: TypeAlias = Sequence[str | None]


def compare_part(
    source: SourceTable, rows: DataFrame, division: Division, number: int, keys: Sequence[str]
) -> tuple[int, list[Difference]]:
    """Return how many rows of a part differ, and the first of them by their keys.

    The keys and digests of all rows of the part pass through the driver, and the values of those that are shown.
    """
    found = digests(rows, division, number, keys).collect()
    here, there = (
        Counter((tuple(row["key"]), row["digest"]) for row in found),
        Counter(source.digests(division, number, keys)),
    )
    missing, unexpected = sorted((there - here).elements()), sorted((here - there).elements())
    if not keys:
        some = missing[: EXAMPLES // 2], unexpected[: EXAMPLES // 2]
        count = len(missing) + len(unexpected)
    else:
        known = sorted({key for key, _ in (*missing, *unexpected)})
        count, shown = len(known), set(known[:EXAMPLES])
        some = [each for each in missing if each[0] in shown], [each for each in unexpected if each[0] in shown]
    wanted = [[digest for _, digest in side] for side in some]
    ours = source.rows(division, number, wanted[0]) if wanted[0] else []
    theirs = [row["row"] for row in rows_of(rows, wanted[1]).collect()] if wanted[1] else []
    return count, list(_differences(names_of(rows), keys, ours, theirs))


def _differences(
    names: Sequence[str], keys: Sequence[str], source: Iterable[Texts], warehouse: Iterable[Texts]
) -> Iterable[Difference]:
    ours, theirs = (_by_key(names, keys, rows) for rows in (source, warehouse))
    for key in sorted({*ours, *theirs}, key=str):
        before, after = ours.get(key), theirs.get(key)
        told = dict(zip(keys or names, key, strict=True))
        if before is None or after is None:
            yield Difference(told, "missing" if after is None else "unexpected")
        else:
            differ = tuple(name for name in names if before[name] != after[name])
            values = ({name: side[name] for name in differ} for side in (before, after))
            yield Difference(told, "changed", differ, *values)


def _by_key(
    names: Sequence[str], keys: Sequence[str], rows: Iterable[Texts]
) -> dict[tuple[str | None, ...], Mapping[str, str | None]]:
    found = (dict(zip(names, row, strict=True)) for row in rows)
    return {tuple(row[name] for name in keys or names): row for row in found}
