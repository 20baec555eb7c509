"""The names of datasets: by default the schema and the name of their tables, else what templates make of them."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from re import split
from typing import Final, Self

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.lake._directories import HISTORY_SUFFIX, SCHEMA, SHARED, TABLE, directory_name, encoded_name
from pgoutput_construct.lake._notes import Progress
from pgoutput_construct.spark._log_view.replicated_tables import Table

_COLUMN: Final = re.compile("[a-z][a-z0-9_]*", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class DatasetNames:
    """Templates of names, with ``{schema}`` and ``{table}`` where these are put."""

    namespace: str = SCHEMA
    """Of the namespace: in a catalog that of the table, else the part of a directory's name before the dot."""
    table: str = TABLE
    """Of the name in the namespace."""
    schema_column: str = ""
    """The column that has the schema of a row, where tables of several schemas share one; "" where they do not."""

    @classmethod
    def parse(cls, namespace: str | None, table: str | None, schema_column: str | None = None) -> Self:
        """Return templates as a caller gives them, None for the default; and the column of the schema, None for none.

        Raises PgoutputError for one that has other fields or characters, or would give all tables one name; and for a
        column of the schema where a template gives each schema tables of its own.
        """
        found = cls(SCHEMA if namespace is None else namespace, TABLE if table is None else table, schema_column or "")
        for what, template in (("namespace", found.namespace), ("table name", found.table)):
            fixed = "".join(split(r"\{schema\}|\{table\}", template))
            if not template or not all(letter.isalnum() or letter in "-_" for letter in fixed):
                raise PgoutputError(
                    f"{what} {template!r}: it may have {SCHEMA}, {TABLE}, letters, digits, - and _, as in "
                    "'{schema}__{table}'"
                )
        if TABLE not in found.table:
            raise PgoutputError(f"table name {found.table!r}: it needs {TABLE}, since each table has a name of its own")
        if TABLE in found.namespace:
            raise PgoutputError(f"namespace {found.namespace!r}: it may have {SCHEMA}, not {TABLE}")
        found._check_shared(schema_column)
        return found

    @classmethod
    def of(cls, progress: Progress) -> Self:
        """Return those of the datasets of a warehouse."""
        return cls(progress.namespace, progress.table_name, progress.schema_column)

    def _check_shared(self, schema_column: str | None) -> None:
        if schema_column is None:
            return
        if not _COLUMN.fullmatch(schema_column):
            raise PgoutputError(
                f"schema column {schema_column!r}: it may have letters, digits and _, and begins with a letter"
            )
        if SCHEMA in self.namespace + self.table:
            raise PgoutputError(
                f"the column {schema_column!r} of the schema is for tables that schemas share: give --namespace "
                f"(namespace=), and --table-name (table_name=) if at all, without {SCHEMA}"
            )

    def directory(self, table: Table, is_history: bool) -> str:
        """Return the name of the directory of a table's dataset, or of its history's: ``namespace.name``.

        Where schemas share tables, it is followed by ``@`` and the schema.
        """
        schema = table.namespace or "pg_catalog"
        parts = (_filled(template, schema, table.name) for template in (self.namespace, self.table))
        of_schema = f"{SHARED}{encoded_name(schema)}" if self.schema_column else ""
        return f"{directory_name(*parts)}{of_schema}{HISTORY_SUFFIX if is_history else ''}"

    def conflicts(
        self, tables: Collection[Table], owners: Mapping[str, int], ignores_case: bool = False
    ) -> Iterator[tuple[Table, PgoutputError]]:
        """Yield the tables that would have the name of another one, each with its error.

        Args:
            tables: The tables; dropped ones have no name any more.
            owners: The OIDs of the tables of present datasets, by directory: such a table keeps its name.
            ignores_case: Whether names that differ in case alone are one where the tables are.
        """
        found: dict[str, list[Table]] = defaultdict(list)
        for table in tables:
            if not table.dropped:
                location, shared, schema = self.directory(table, False).partition(SHARED)
                found[f"{location.casefold() if ignores_case else location}{shared}{schema}"].append(table)
        for together in found.values():
            for table in together if len(together) > 1 else ():
                directory = self.directory(table, False)
                if owners.get(directory) != table.relation_oid:
                    yield table, self._conflict(directory, table, together)

    def _conflict(self, directory: str, table: Table, together: Collection[Table]) -> PgoutputError:
        others = [each for each in together if each is not table]
        names = ", ".join(sorted(each.qualified for each in others))
        case = "" if all(self.directory(each, False) == directory for each in others) else " in another case"
        return PgoutputError(
            f"{table.qualified} would be {directory}, as {names} would{case}: replicate only one of them (--table), or "
            "into another warehouse, where --namespace or --table-name has {schema}, or "
            "--schema-column tells their rows apart"
        )


DEFAULT_NAMES: Final = DatasetNames()


def _filled(template: str, schema: str, table: str) -> str:
    return "".join(
        {SCHEMA: schema, TABLE: table}.get(part, part) for part in split(r"(\{schema\}|\{table\})", template)
    )
