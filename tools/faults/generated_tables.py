"""Generates the statements of an ordinary table: columns of any types, with or without a key, and its alterations."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tools.faults.generated_types import Kind, kinds_for

__all__ = ["Life", "TableLife"]

_MANY: Final = 500
"""Updates of one row in one transaction; with these, and this number of rows, a transaction is streamed."""
_INTEGER: Final = Kind("integer", ("1", "2", "3"))
_DEFAULTS: Final = (
    *("", "", " DEFAULT {0}", " DEFAULT {0}", " NOT NULL DEFAULT {0}"),
    " DEFAULT (CASE WHEN random() < 0.5 THEN {0} END)",
)
"""What a column that is added has: the last one is volatile, so that the table is rewritten."""


@dataclass
class Life:
    """The history of one table, or of a few related tables: steps in order."""

    name: str
    """The table's, or how the names of all begin."""
    chance: random.Random
    version: int
    publication: str
    is_listed: bool
    """Whether tables are added to the publication one by one."""
    tables: int = 1
    steps: list[tuple[str, tuple[str, ...], str, int]] = field(default_factory=list)
    """The fields of its steps."""

    def add(self, feature: str, *statements: str, session: int = 0) -> None:
        """Add a step."""
        self.steps.append((feature, statements, self.name, session))

    def publish(self, table: str, details: str = "") -> None:
        """Publish a table where each of them has to be; the details are columns and a filter."""
        if self.is_listed:
            self.add("publication", f"ALTER PUBLICATION {self.publication} ADD TABLE {table} {details}".strip())


@dataclass
class _Column:
    kind: Kind
    is_key: bool = False


class TableLife:
    """One table, as far as what happened to it is known: whatever failed at the server did not happen."""

    def __init__(self, life: Life) -> None:
        self._life, self._chance = life, life.chance
        self._schema, self._name = "public", life.name
        self._columns: dict[str, _Column] = {}
        self._keys: list[tuple[str, ...]] = []
        self._fresh = 0

    @property
    def _ref(self) -> str:
        return f"{self._schema}.{self._name}"

    @property
    def _key(self) -> list[str]:
        return [name for name, column in self._columns.items() if column.is_key]

    def create(self) -> None:
        """Create it, with an identity of its own, and publish it."""
        for statement in self._creation():
            self._life.add("created", statement)
        self._published()
        for _ in range(self._chance.randrange(3)):
            self._life.add("dml", self._insert())

    def live(self, events: int) -> None:
        """Add a number of random steps."""
        names = [*_EVENTS]
        for name in self._chance.choices(names, [_EVENTS[name][1] for name in names], k=events):
            _EVENTS[name][0](self, name)

    # What it is made of.

    def _creation(self) -> list[str]:
        chance, version = self._chance, self._life.version
        self._columns, self._keys = {}, []
        keyed = chance.choices(["id", "trap", "both", "none"], [5, 3, 3, 2])[0]
        if keyed in ("id", "both"):
            self._columns["id"] = _Column(_INTEGER, is_key=True)
        if keyed in ("trap", "both"):
            for number in range(chance.choice([1, 1, 2])):
                self._columns[f"k{number}"] = _Column(chance.choice(kinds_for(version, keys=True)), is_key=True)
        for number in range(chance.randrange(0 if self._columns else 1, 6)):
            self._columns[f"c{number}"] = _Column(chance.choice(kinds_for(version)))
        if chance.random() < 0.2:  # the key need not come first
            self._columns = dict(sorted(self._columns.items(), key=lambda _: chance.random()))
        parts = [f"{name} {column.kind.name}" for name, column in self._columns.items()]
        identity = chance.choices(["default", "full", "index", "nothing"], [10, 6, 3, 1])[0]
        key = ", ".join(self._key)
        if not key:
            identity = chance.choice(["full", "full", "default"])
        elif identity == "index":
            parts = [f"{part} NOT NULL" if part.split()[0] in self._key else part for part in parts]
        elif identity != "full" or chance.random() < 0.5:
            parts.append(f"PRIMARY KEY ({key})")
        statements = [f"CREATE TABLE {self._ref} ({', '.join(parts)})"]
        if identity == "index":
            statements.append(f"CREATE UNIQUE INDEX {self._name}_by ON {self._ref} ({key})")
            statements.append(f"ALTER TABLE {self._ref} REPLICA IDENTITY USING INDEX {self._name}_by")
        elif identity != "default":
            statements.append(f"ALTER TABLE {self._ref} REPLICA IDENTITY {identity.upper()}")
        return statements

    def _published(self) -> None:
        """Publish it, with some of its columns and rows perhaps: a filter has to do with columns of the key."""
        details, chance = "", self._chance
        if self._key and chance.random() < 0.25:
            others = [name for name in self._columns if name not in self._key and chance.random() < 0.5]
            details = f" ({', '.join([*self._key, *others])})"
        if "id" in self._columns and chance.random() < 0.25:
            details += f" WHERE (id % {chance.randrange(2, 4)} = 0)"
        self._life.publish(self._ref, details.strip())

    def _row(self) -> tuple[str, str]:
        """Return columns and values of a new row."""
        values = {}
        for name, column in self._columns.items():
            if column.is_key and column.kind is _INTEGER:
                self._fresh += 1
                values[name] = str(self._fresh)
            else:
                values[name] = column.kind.value(self._chance, 0 if column.is_key else 0.15)
        if self._key:
            self._keys.append(tuple(values[name] for name in self._key))
        return ", ".join(values), ", ".join(values.values())

    def _insert(self) -> str:
        if not self._columns:
            return f"INSERT INTO {self._ref} DEFAULT VALUES"
        rows = [self._row() for _ in range(self._chance.choice([1, 1, 2, 5]))]
        values = ", ".join(f"({values})" for _, values in rows)
        return f"INSERT INTO {self._ref} ({rows[0][0]}) VALUES {values} ON CONFLICT DO NOTHING"

    def _where(self, key: tuple[str, ...] | None = None) -> str:
        """Return a condition for a row: by its key, or else for some that are stored first, or next to each other."""
        if key is None and self._keys and self._key:
            key = self._chance.choice(self._keys)
        if key is not None and len(key) == len(self._key):
            return " AND ".join(
                f"{name} = {value}::{self._columns[name].kind.name}" for name, value in zip(self._key, key, strict=True)
            )
        some = self._chance.choice(["LIMIT 1", "LIMIT 2", "LIMIT 1 OFFSET 1"])
        return f"ctid IN (SELECT ctid FROM {self._ref} ORDER BY ctid {some})"

    def _update(self, key: tuple[str, ...] | None = None) -> str:
        others = [name for name in self._columns if name not in self._key]
        changed = self._chance.sample(others, self._chance.randrange(1, len(others) + 1)) if others else []
        values = [f"{name} = {self._columns[name].kind.value(self._chance)}" for name in changed]
        name = self._chance.choice([*self._columns])
        return f"UPDATE {self._ref} SET {', '.join(values) or f'{name} = {name}'} WHERE {self._where(key)}"

    def _delete(self, key: tuple[str, ...] | None = None) -> str:
        return f"DELETE FROM {self._ref} WHERE {self._where(key)}"

    def _dml(self) -> str:
        return self._chance.choices([self._insert, self._update, self._delete, self._move], [4, 5, 2, 2])[0]()

    def _some(self) -> list[str]:
        return [self._dml() for _ in range(self._chance.randrange(1, 5))]

    def _move(self) -> str:
        """Change the key of a row, possibly to an equal value with another text."""
        if not self._key or not self._keys:
            return self._update()
        old, new = self._chance.choice(self._keys), []
        for name in self._key:
            if self._columns[name].kind is _INTEGER:
                self._fresh += 1
                new.append(str(self._fresh))
            else:
                new.append(self._columns[name].kind.value(self._chance, 0))
        self._keys.append(tuple(new))
        values = ", ".join(f"{name} = {value}" for name, value in zip(self._key, new, strict=True))
        return f"UPDATE {self._ref} SET {values} WHERE {self._where(old)}"

    # What may happen.

    def _writes(self, feature: str) -> None:
        self._life.add(feature, self._dml())

    def _transaction(self, feature: str) -> None:
        self._life.add(
            feature, "BEGIN", *self._some(), *self._some(), self._chance.choice(["COMMIT"] * 4 + ["ROLLBACK"])
        )

    def _same_values(self, feature: str) -> None:
        name = self._chance.choice([*self._columns])
        where = self._chance.choice(["", f" WHERE {self._where()}"])
        self._life.add(feature, f"UPDATE {self._ref} SET {name} = {name}{where}")

    def _many(self, feature: str) -> None:
        """Update one row hundreds of times in a transaction, or insert as many rows."""
        kinds = {name: column.kind.name for name, column in self._columns.items() if name not in self._key}
        texts = [name for name, kind in kinds.items() if kind in ("text", "integer", "bigint", "numeric")]
        if texts and self._keys:
            name = self._chance.choice(texts)
            loop = f"FOR i IN 1..{_MANY} LOOP UPDATE {self._ref} SET {name} = i WHERE {self._where()}; END LOOP"
            self._life.add(feature, f"DO $$ BEGIN {loop}; END $$")
        elif self._key == ["id"]:
            first, self._fresh = self._fresh + 1, self._fresh + _MANY
            self._life.add(feature, f"INSERT INTO {self._ref} (id) SELECT generate_series({first}, {self._fresh})")

    def _replaced(self, feature: str) -> None:
        """Delete a row, and insert another one with its key, in one transaction or two."""
        if not self._keys or not self._key:
            return
        key = self._chance.choice(self._keys)
        others = {n: c.kind.value(self._chance) for n, c in self._columns.items() if n not in self._key}
        values = ", ".join([*key, *others.values()])
        insert = f"INSERT INTO {self._ref} ({', '.join([*self._key, *others])}) VALUES ({values})"
        both = self._delete(key), insert
        self._life.add(feature, *(("BEGIN", *both, "COMMIT") if self._chance.random() < 0.6 else both))

    def _swapped(self, feature: str) -> None:
        """Two rows exchange their keys, by way of a third one."""
        if self._key == ["id"] and len(self._keys) > 1:
            (one,), (other,) = self._chance.sample(self._keys, 2)
            steps = ((one, "-1"), (other, one), ("-1", other))
            moves = [f"UPDATE {self._ref} SET id = {new} WHERE id = {old}" for old, new in steps]
            self._life.add(feature, "BEGIN", *moves, "COMMIT")

    def _truncate(self, feature: str) -> None:
        self._keys = []
        self._life.add(feature, f"TRUNCATE {self._ref}", *(self._insert() for _ in range(self._chance.randrange(3))))

    def _truncate_amid(self, feature: str) -> None:
        """Truncate within a transaction, with equal rows before and after."""
        insert = self._insert()
        self._life.add(feature, "BEGIN", insert, f"TRUNCATE {self._ref}", insert, self._dml(), "COMMIT")

    def _savepoint(self, feature: str) -> None:
        undone, end = self._some(), self._chance.choice(["ROLLBACK TO s", "RELEASE s"])
        self._life.add(feature, "BEGIN", *self._some(), "SAVEPOINT s", *undone, end, *self._some(), "COMMIT")

    def _savepoint_ddl(self, feature: str) -> None:
        """DDL that is rolled back, with rows that only the table of then had."""
        name = self._new_name()
        undone = [f"ALTER TABLE {self._ref} ADD COLUMN {name} int DEFAULT 5", *self._some()]
        self._life.add(
            feature, "BEGIN", *self._some(), "SAVEPOINT s", *undone, "ROLLBACK TO s", *self._some(), "COMMIT"
        )

    def _two_phase(self, feature: str) -> None:
        gid = f"{self._life.name}-{self._chance.getrandbits(40)}"
        end = self._chance.choice(["COMMIT", "COMMIT", "ROLLBACK"])
        ddl = [f"ALTER TABLE {self._ref} ADD COLUMN {self._new_name()} text DEFAULT 'p'"] if "DDL" in feature else []
        self._life.add(feature, "BEGIN", *self._some(), *ddl, *self._some(), f"PREPARE TRANSACTION '{gid}'")
        self._life.add(feature, f"{end} PREPARED '{gid}'")

    def _open_transaction(self, feature: str) -> None:
        """A transaction that stays open during others."""
        session = self._chance.choice([1, 2])
        self._life.add(feature, "BEGIN", *self._some(), session=session)
        for _ in range(self._chance.randrange(3)):
            self._life.add(feature, self._insert())
        self._life.add(feature, *self._some(), self._chance.choice(["COMMIT", "COMMIT", "ROLLBACK"]), session=session)

    def _add_column(self, feature: str) -> None:
        name, kind = self._new_name(), self._chance.choice(kinds_for(self._life.version))
        default = self._chance.choice(_DEFAULTS[:-1]).format(kind.value(self._chance, 0))
        if "SELECT" not in default:  # a default has no subquery
            self._columns[name] = _Column(kind)
            self._life.add(feature, f"ALTER TABLE {self._ref} ADD COLUMN {name} {kind.name}{default}")

    def _add_volatile(self, feature: str) -> None:
        name = self._new_name()
        self._columns[name] = _Column(Kind("integer", ("1", "2")))
        default = _DEFAULTS[-1].format("1")
        self._life.add(feature, f"ALTER TABLE {self._ref} ADD COLUMN {name} integer{default}")

    def _drop_column(self, feature: str) -> None:
        name = self._other()
        if name and len(self._columns) > 1:
            del self._columns[name]
            self._life.add(feature, f"ALTER TABLE {self._ref} DROP COLUMN {name}")

    def _drop_and_add(self, feature: str) -> None:
        """Drop a column and add another one of the same name, in one transaction."""
        name = self._other()
        if name:
            drop, add = (
                f"ALTER TABLE {self._ref} DROP COLUMN {name}",
                f"ALTER TABLE {self._ref} ADD COLUMN {name} integer",
            )
            self._columns[name] = _Column(Kind("integer", ("1", "2")))
            self._life.add(feature, "BEGIN", drop, add, self._dml(), "COMMIT")

    def _rename_column(self, feature: str) -> None:
        name, new = self._chance.choice([*self._columns]), self._new_name()
        self._columns = {new if each == name else each: column for each, column in self._columns.items()}
        self._life.add(feature, f"ALTER TABLE {self._ref} RENAME COLUMN {name} TO {new}")

    def _alter_type(self, feature: str) -> None:
        name = self._other()
        if name:
            kind = self._chance.choice(kinds_for(self._life.version))
            value = kind.value(self._chance, 0)
            if "SELECT" not in value:
                self._columns[name] = _Column(kind)
                change = f"ALTER COLUMN {name} TYPE {kind.name} USING ({value})::{kind.name}"
                self._life.add(feature, f"ALTER TABLE {self._ref} {change}")

    def _cast_type(self, feature: str) -> None:
        """Give a column a type that its values can be cast to, some of them without a rewrite."""
        casts = {
            **{"smallint": "integer", "integer": "bigint", "bigint": "numeric", "real": "double precision"},
            **{"numeric(12, 3)": "numeric(14, 3)", "numeric(14, 3)": "numeric", "double precision": "text"},
            **{"varchar(12)": "varchar(20)", "varchar(20)": "text", "char(6)": "text", "timestamp": "timestamptz"},
            **{"timestamptz": "timestamp", "date": "timestamp", "price": "numeric", "mood": "text", "uuid": "text"},
            **{"text": "varchar", "json": "jsonb", "integer[]": "bigint[]", "boolean": "text", "inet": "text"},
            **{"positive": "integer", "cidr": "inet", "numeric": "text", "time": "interval", "bytea": "text"},
        }
        name = self._chance.choice([*self._columns])
        column = self._columns[name]
        if to := casts.get(column.kind.name):
            self._columns[name] = _Column(Kind(to, column.kind.values), column.is_key)
            self._life.add(feature, f"ALTER TABLE {self._ref} ALTER COLUMN {name} TYPE {to} USING {name}::{to}")

    def _identity(self, feature: str) -> None:
        identity = self._chance.choice(
            ["FULL", "FULL", "DEFAULT", "DEFAULT", "NOTHING", f"USING INDEX {self._name}_by"]
        )
        begin, end = (("BEGIN",), ("COMMIT",)) if self._chance.random() < 0.3 else ((), ())
        change = f"ALTER TABLE {self._ref} REPLICA IDENTITY {identity}"
        self._life.add(feature, *begin, self._dml(), change, self._dml(), *end)

    def _identity_apart(self, feature: str) -> None:
        """Rows are told apart by a column that is not of the key, and changes; the key may change, too."""
        name = self._new_name()
        self._life.add(
            feature,
            f"ALTER TABLE {self._ref} ADD COLUMN {name} int GENERATED BY DEFAULT AS IDENTITY",
            f"CREATE UNIQUE INDEX {self._life.name}_{name} ON {self._ref} ({name})",
            self._dml(),
            f"ALTER TABLE {self._ref} REPLICA IDENTITY USING INDEX {self._life.name}_{name}",
            *self._some(),
            f"UPDATE {self._ref} SET {name} = -{name} WHERE {name} % 2 = 1",
            *self._some(),
        )

    def _new_key(self, feature: str) -> None:
        """Another primary key."""
        name = self._other()
        if name and self._key:
            table, constraint = f"ALTER TABLE {self._ref}", f"{self._life.name}_pkey"
            drop = f"{table} DROP CONSTRAINT IF EXISTS {constraint}"
            add = f"{table} ADD CONSTRAINT {constraint} PRIMARY KEY ({', '.join([*self._key, name])})"
            self._life.add(feature, "BEGIN", drop, add, "COMMIT")

    def _rename_table(self, feature: str) -> None:
        old = self._ref
        self._fresh += 1
        self._name = f"{self._life.name}_{self._fresh}"
        self._life.add(feature, f"ALTER TABLE {old} RENAME TO {self._name}", self._dml())

    def _set_schema(self, feature: str) -> None:
        old = self._ref
        self._schema = "other" if self._schema == "public" else "public"
        self._life.add(feature, f"ALTER TABLE {old} SET SCHEMA {self._schema}", self._dml())

    def _create_again(self, feature: str) -> None:
        """Drop it, and create another one of its name."""
        drop = f"DROP TABLE {self._ref}"
        create = self._creation()
        inserts = [self._insert() for _ in range(self._chance.randrange(3))]
        begin, end = (("BEGIN",), ("COMMIT",)) if self._chance.random() < 0.5 else ((), ())
        self._life.add(feature, *begin, drop, *create, *inserts, *end)
        self._published()

    def _rewrite(self, feature: str) -> None:
        table = f"ALTER TABLE {self._ref}"
        what = self._chance.choice([f"VACUUM FULL {self._ref}", f"{table} SET UNLOGGED", f"{table} SET LOGGED"])
        self._life.add(feature, what, self._dml())

    def _snapshot(self, feature: str) -> None:
        self._life.add(feature, self._ref)

    def _publication(self, feature: str) -> None:
        """Remove it from the publication, and add it again with other columns and another filter."""
        if self._life.is_listed:
            self._life.add(feature, f"ALTER PUBLICATION {self._life.publication} DROP TABLE {self._ref}", self._dml())
            self._published()
            self._life.add(feature, self._dml())

    def _new_name(self) -> str:
        self._fresh += 1
        return f"n{self._fresh}"

    def _other(self) -> str | None:
        others = [name for name in self._columns if name not in self._key]
        return self._chance.choice(others) if others else None


_Event = Callable[[TableLife, str], None]
_EVENTS: Final[dict[str, tuple[_Event, float]]] = {
    "dml": (TableLife._writes, 14),
    "transaction": (TableLife._transaction, 5),
    "same values": (TableLife._same_values, 2),
    "many changes": (TableLife._many, 1),
    "key replaced": (TableLife._replaced, 3),
    "keys swapped": (TableLife._swapped, 2),
    "truncate": (TableLife._truncate, 1),
    "truncate amid": (TableLife._truncate_amid, 0.7),
    "savepoint": (TableLife._savepoint, 2),
    "savepoint with DDL": (TableLife._savepoint_ddl, 1),
    "two phases": (TableLife._two_phase, 1.2),
    "two phases with DDL": (TableLife._two_phase, 0.5),
    "open transaction": (TableLife._open_transaction, 1),
    "column added": (TableLife._add_column, 2),
    "volatile default": (TableLife._add_volatile, 0.5),
    "column dropped": (TableLife._drop_column, 0.7),
    "column replaced": (TableLife._drop_and_add, 0.5),
    "column renamed": (TableLife._rename_column, 0.7),
    "type altered": (TableLife._alter_type, 0.7),
    "type cast": (TableLife._cast_type, 1),
    "identity": (TableLife._identity, 1.5),
    "identity of another column": (TableLife._identity_apart, 0.5),
    "new key": (TableLife._new_key, 0.4),
    "table renamed": (TableLife._rename_table, 0.5),
    "schema changed": (TableLife._set_schema, 0.5),
    "created again": (TableLife._create_again, 0.6),
    "rewritten": (TableLife._rewrite, 0.3),
    "snapshot": (TableLife._snapshot, 0.2),
    "publication": (TableLife._publication, 1),
}
"""The operations on an ordinary table, with their weights."""
