"""Names of columns that a format of tables cannot have, and why: one table of rules per format.

Such a table can often be written, but not be read, or not be changed. So a table is refused before its first row is
written, and its error says which column it is, and what to do; other tables are not concerned.
"""

import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pgoutput_construct.errors import ChangeLogError
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.spark._table_formats.dataset_columns import Naming
from pgoutput_construct.stream.identifiers import quote_identifier

_LIST: Final = "list<"
"""How the types of arrays begin in a version."""
_PARTS: Final = {"_untyped": ("key", "value"), "_unchanged": ("element",)}
"""What added columns contain, which are a map and an array, by their names in replays."""
_LETTERS: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo"})
_DIGITS: Final = "Nd"
_UNIT: Final = 2
"""Bytes of a character of Java: half of a pair of surrogates is one, too, and neither a letter nor a digit."""


def _as_iceberg_stores(name: str) -> str:
    """Return the name that Iceberg's writer gives a column in Parquet files: a valid one of Avro.

    Source: Iceberg, AvroSchemaUtil.makeCompatibleName.
    """
    units = name.encode("utf-16-be", "surrogatepass")
    found = list[str]()
    for start in range(0, len(units), _UNIT):
        unit = chr(int.from_bytes(units[start : start + _UNIT]))
        kind = unicodedata.category(unit)
        if unit == "_" or kind in _LETTERS or (kind == _DIGITS and start):
            found.append(unit)
        else:
            found.append(f"_{unit}" if kind == _DIGITS else f"_x{ord(unit):X}")
    return "".join(found)


@dataclass(frozen=True)
class ReservedNames:
    """The names that the columns of tables of a format cannot have."""

    format: str
    """The name of the format, for messages."""
    reasons: Mapping[frozenset[str], str] = field(default_factory=dict)
    """Why, by the names."""
    has_paths: bool = False
    """Whether a column is found by its path: what an array or a map contains has one as well."""
    stored_name: Callable[[str], str] = str
    """Makes of the name of a column the one that the columns of a table must not have twice."""

    def check(self, dataset: Dataset, naming: Naming, has_table: bool) -> None:
        """Raise ChangeLogError for a column that a dataset cannot have.

        Args:
            dataset: The dataset as it will be.
            naming: The names of its added columns.
            has_table: Whether the warehouse has it already.
        """
        version = dataset.version
        table, keys = version.table, version.shape.key_columns
        own = version.shape.columns if dataset.is_history else version.shape.current
        parts: dict[str, Collection[str]] = {
            name: ("element",) for name in own if version.shape.columns[name].startswith(_LIST)
        }
        parts |= {naming.added_name(name): _PARTS[name] for name in naming.added if name in _PARTS}
        for name, reason in self.refusals([*own, *map(naming.added_name, naming.added)], parts):
            column, resync = (
                f"{table}.{quote_identifier(name)}",
                f", with --resync {table} (resync=)" if has_table else "",
            )
            exclude = "" if name in keys else f" or exclude it (--exclude-columns '{column}', exclude_columns=)"
            remedy = (
                f"warehouse (--rename-column '{column}=NAME', rename_columns=){exclude}{resync}, rename it at the "
                "source, or choose another format (--into, into=)"
            )
            if name in version.shape.rules:
                remedy = f"warehouse than this one (--rename-column, rename_columns=){resync}"
            problem = f"{self.format} cannot have the column {name!r}: {reason}"
            raise ChangeLogError(f"{table}: {problem}; give it another name in the {remedy}")

    def refusals(self, names: Collection[str], parts: Mapping[str, Collection[str]]) -> Iterator[tuple[str, str]]:
        """Yield the columns that a table cannot have, each with the reason.

        Args:
            names: The columns of the table.
            parts: What the format calls the contents of arrays and maps, by the names of these columns.
        """
        paths = {f"{name}.{part}": name for name, each in parts.items() for part in each} if self.has_paths else {}
        stored = dict[str, str]()
        for name in names:
            for reserved, reason in self.reasons.items():
                if name in reserved:
                    yield name, reason
            if name in paths:
                yield name, f"that is its name for what the column {paths[name]!r} contains"
            first = stored.setdefault(self.stored_name(name), name)
            if first != name:
                yield name, f"in its tables it is the same name as that of the column {first!r}"


_ROW_INDEX: Final = frozenset({"_tmp_metadata_row_index"})
"""What Spark's reader of Parquet fills with the number of a row (ParquetFileFormat)."""
_FILLED: Final = "Spark puts a value of its own into it, and fails"
_IN_MERGE: Final = "it is a column of its own in a MERGE of Spark"
PARQUET: Final = ReservedNames("Parquet", {_ROW_INDEX: _FILLED})
DELTA: Final = ReservedNames(
    "Delta Lake",
    {
        # Delta Lake: DeltaParquetFileFormat, for deletion vectors.
        _ROW_INDEX | {"__delta_internal_is_row_deleted", "__delta_internal_row_index"}: _FILLED,
        # MergeIntoCommandBase, MergeOutputGeneration.
        frozenset({"_source_row_present_", "_target_row_present_", "_row_dropped_"}): _IN_MERGE,
    },
    stored_name=str.lower,
)
"""Names that differ in case alone are one (SchemaMergingUtils)."""
CHANGE_COLUMNS: Final = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
DELTA_WITH_CHANGES: Final = replace(
    DELTA, reasons={**DELTA.reasons, CHANGE_COLUMNS: "it is a column of the change data feed"}
)
"""With delta.enableChangeDataFeed (CDCReader)."""
ICEBERG: Final = ReservedNames(
    "Iceberg",
    {
        # Iceberg's specification, "Reserved Field IDs" and "Row Lineage"; MetadataColumns.
        frozenset(
            {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"}
        ): "it is a metadata column of every table",
        # Spark: RowDeltaUtils, RewriteMergeIntoTable, MergeRows. Values of the first one would be numbers, silently.
        frozenset({"__row_operation", "__row_from_source", "__row_from_target", "__row_id"}): _IN_MERGE,
    },
    has_paths=True,
    stored_name=_as_iceberg_stores,
)
