"""Tables of Delta Lake by the library ``deltalake``: files that are written without Spark become those of a table.

A commit of Spark runs jobs over Delta Lake's own log, which take a second of CPU for a table of ten rows; one of the
library takes milliseconds. It is used for plain tables only, which the two cannot understand differently: in a local
directory, without partitions, without rules for columns, and with no more features than ``_FEATURES``. Where the
library is not installed, Spark does everything.
"""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import from_arrow_schema

from pgoutput_construct.spark._table_formats.sink import FilesUse
from pgoutput_construct.spark._table_formats.table_description import TABLE

NTZ: Final = "timestampNtz"
"""The feature that columns of timestamps without time zone need."""
_LIBRARY: Final = "1."
_VERSIONS: Final = ((1, 1), (1, 2), (1, 7), (3, 7))
"""The versions of the protocol, for readers and writers, that a plain table may have,"""
_FEATURES: Final = frozenset({"appendOnly", "invariants", NTZ})
"""and its features: those that Spark gives to every table."""
_SETTING: Final = "delta."
"""How properties begin that may change how a table is written."""
_METADATA: Final = "userMetadata"
"""What a commit has of the program that made it."""
_COMMENT: Final = "comment"
"""The only metadata of a column that is no rule for its values."""
_LONGEST: Final = 32
"""Characters of a text in the statistics of a file, as Spark has them."""
_ALMOST: Final = timedelta(microseconds=999)
"""What is added to a time before it is cut to milliseconds, so that it is not less."""


@cache
def has_deltalake() -> bool:
    """Return whether the library is installed, in a version that is known."""
    with suppress(PackageNotFoundError):
        return version("deltalake").startswith(_LIBRARY)
    return False


class DeltaCommit(NamedTuple):
    """A commit of a table."""

    version: int
    """Its number."""
    at: float
    """When it was made, in seconds since 1970."""
    metadata: str | None
    """Its ``userMetadata``; None where a program has given none."""


def commits_of(path: Path, most: int) -> list[DeltaCommit] | None:
    """Return the latest commits of a table, the last one first; None where the library cannot read the table.

    Args:
        path: Its directory.
        most: The number of commits.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        found = DeltaTable(path.as_uri()).history(most)
    except DeltaError:
        return None
    commits = (DeltaCommit(each["version"], each["timestamp"] / 1000, each.get(_METADATA)) for each in found)
    return sorted(commits, reverse=True)


class PlainDeltaTable:
    """A plain table, or a directory where one is to be created.

    Args:
        path: The directory.
        table: The table as ``deltalake`` has it; None where it is to be created.
    """

    def __init__(self, path: Path, table: Any = None) -> None:
        self._address, self._table = path.as_uri(), table

    @classmethod
    def opened(cls, path: Path) -> Self | None:
        """Return the table in a directory; None where it is not a plain one, or the library cannot read it."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            found = DeltaTable(path.as_uri())
        except DeltaError:
            return None
        protocol, metadata = found.protocol(), found.metadata()
        versions = (protocol.min_reader_version, protocol.min_writer_version)
        features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
        has_settings = any(name.startswith(_SETTING) for name in metadata.configuration)
        has_rules = any({*field["metadata"]} - {_COMMENT} for field in _fields(found))
        is_plain = versions in _VERSIONS and features <= _FEATURES and not metadata.partition_columns
        return cls(path, found) if is_plain and not has_settings and not has_rules else None

    @property
    def files(self) -> dict[str, int] | None:
        """The bytes of its files, by their names in the directory; None where some are elsewhere, or it cannot tell.

        It parses the statistics of each, and fails for dates after the year 9999 that Spark has written.
        """
        from deltalake.exceptions import DeltaError

        try:
            added = pa.table(self._table.get_add_actions(flatten=True))
        except DeltaError:
            return None
        found = dict(zip(added["path"].to_pylist(), added["size_bytes"].to_pylist(), strict=True))
        return None if any(sign in name for name in found for sign in "%:/") else found

    def has(self, schema: pa.Schema) -> bool:
        """Return whether it has these columns."""
        return [(field["name"], field["type"]) for field in _fields(self._table)] == _kinds(schema)

    def can_have(self, schema: pa.Schema) -> bool:
        """Return whether its columns can become these, without another feature."""
        is_ntz = any("timestamp_ntz" in json.dumps(kind) for _, kind in _kinds(schema))
        return self._table is None or not is_ntz or NTZ in (self._table.protocol().writer_features or ())

    def describe(self, comments: Mapping[str, str], metadata: str) -> bool:
        """Give the table and its columns comments, and no others, in a commit for each.

        Args:
            comments: The comments by the names of columns, and that of the table as TABLE.
            metadata: The ``userMetadata`` of the commits.

        Returns:
            False where the library refuses one, such as a long one; those before it were written.
        """
        from deltalake.exceptions import DeltaError

        properties = _commit_properties(metadata)
        with suppress(DeltaError):
            for field in _fields(self._table):
                name, text = field["name"], comments.get(field["name"], "")
                if field["metadata"].get(_COMMENT, "") != text:
                    self._table.alter.set_column_metadata(name, {_COMMENT: text}, commit_properties=properties)
            if (self._table.metadata().description or "") != (text := comments.get(TABLE, "")):
                self._table.alter.set_table_description(text, commit_properties=properties)
            return True
        return False

    def vacuum(self, hours: int, metadata: str) -> None:
        """Remove the files that no version of these hours has, as VACUUM does.

        Args:
            hours: How many.
            metadata: The ``userMetadata`` of the commits that say so.
        """
        properties = _commit_properties(metadata)
        self._table.vacuum(hours, False, enforce_retention_duration=False, commit_properties=properties, full=True)

    def write_checkpoint(self) -> None:
        """Write a checkpoint of the latest version."""
        self._table.create_checkpoint()

    def commit(
        self, use: FilesUse, files: Mapping[str, tuple[int, pq.FileMetaData]], schema: pa.Schema, metadata: str
    ) -> None:
        """Make files those of the table, in one commit, which also creates it.

        Args:
            use: What the files are to it.
            files: The bytes of each and its footer, by its name in the directory.
            schema: The columns, if the files replace the table.
            metadata: The ``userMetadata`` of the commit.
        """
        from deltalake import Schema
        from deltalake.transaction import AddAction, create_table_with_add_actions

        now, properties = int(time.time() * 1000), _commit_properties(metadata)
        actions = [
            AddAction(name, size, {}, now, True, json.dumps(statistics_of(footer)))
            for name, (size, footer) in files.items()
        ]
        if use is FilesUse.REPLACE:
            columns = Schema.from_json(from_arrow_schema(schema, prefer_timestamp_ntz=True).json())
        else:
            columns = self._table.schema()
        if self._table is None:
            create_table_with_add_actions(self._address, columns, actions, commit_properties=properties)
        else:
            mode = "append" if use is FilesUse.APPEND else "overwrite"
            self._table.create_write_transaction(actions, mode, columns, commit_properties=properties)


def _commit_properties(metadata: str) -> Any:
    from deltalake import CommitProperties

    return CommitProperties(custom_metadata={_METADATA: metadata})


def statistics_of(footer: pq.FileMetaData) -> dict[str, Any]:
    """Return the statistics of a file for Delta Lake: by these a MERGE finds the files that can have a row.

    They have the least and the greatest value of columns of whole numbers, texts, dates and times: texts cut to 32
    characters and times to milliseconds, none that would be too great then, or that JSON lacks.
    """
    least, greatest, nulls = dict[str, Any](), dict[str, Any](), dict[str, int]()
    for index in range(footer.num_columns):
        parts = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        found = [part.statistics for part in parts]
        name = parts[0].path_in_schema if parts else ""
        if footer.schema.column(index).max_repetition_level or name != footer.schema.column(index).name:
            continue  # a part of an array, a map, or a struct
        if not found or not all(each is not None and each.has_null_count for each in found):
            continue
        nulls[name] = sum(each.null_count for each in found)
        known = [each for each in found if each.num_values]
        if known and all(each.has_min_max for each in known):
            with suppress(OverflowError, ValueError):  # a time that Python does not have
                low, high = _least(min(each.min for each in known)), _greatest(max(each.max for each in known))
                least |= {} if low is None else {name: low}
                greatest |= {} if high is None else {name: high}
    return {"numRecords": footer.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _least(value: Any) -> Any:
    return value[:_LONGEST] if isinstance(value, str) else _as_json(value)


def _greatest(value: Any) -> Any:
    if isinstance(value, datetime):
        return _as_json(value + _ALMOST)
    return None if isinstance(value, str) and len(value) > _LONGEST else _as_json(value)


def _as_json(value: Any) -> Any:
    match value:
        case bool():
            return None
        case int() | str():
            return value
        case datetime():
            text = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
            return text if value.tzinfo is None else f"{text}Z"
        case date():
            return value.isoformat()
    return None


def _kinds(schema: pa.Schema) -> list[tuple[str, Any]]:
    """Return columns, each with its type as Delta Lake's JSON has it, which is Spark's."""
    return [(each.name, each.dataType.jsonValue()) for each in from_arrow_schema(schema, prefer_timestamp_ntz=True)]


def _fields(table: Any) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = json.loads(table.schema().to_json())["fields"]
    return fields
