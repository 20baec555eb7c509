"""Generates the statements of special tables: partitioned, renamed, dropped and re-created, and others."""

from collections.abc import Callable, Mapping
from typing import Final

from tools.faults.generated_tables import Life, TableLife

__all__ = ["LIVES", "Life"]


def _ordinary(life: Life) -> None:
    table = TableLife(life)
    table.create()
    table.live(life.chance.randrange(6, 25))


def _short(life: Life) -> None:
    table = TableLife(life)
    table.create()
    table.live(life.chance.randrange(1, 6))


def _partitioned(life: Life) -> None:
    """Rows move between partitions, which come and go: attached with rows, detached, with another order of columns."""
    root, chance = life.name, life.chance
    key = chance.choice(["PRIMARY KEY (id, part)", "UNIQUE (id, part)"])
    life.add(
        "partitions",
        f"CREATE TABLE {root} (id int NOT NULL, part int NOT NULL, v text, {key}) PARTITION BY LIST (part)",
        f"CREATE TABLE {root}_1 PARTITION OF {root} FOR VALUES IN (1)",
        f"CREATE TABLE {root}_2 (v text, gone int, part int NOT NULL, id int NOT NULL, {key})",
        f"ALTER TABLE {root}_2 DROP COLUMN gone",
        f"ALTER TABLE {root} ATTACH PARTITION {root}_2 FOR VALUES IN (2)",
        f"CREATE TABLE {root}_3 PARTITION OF {root} FOR VALUES IN (3) PARTITION BY RANGE (id)",
        f"CREATE TABLE {root}_3a PARTITION OF {root}_3 FOR VALUES FROM (0) TO (50)",
        f"CREATE TABLE {root}_3b PARTITION OF {root}_3 DEFAULT",
    )
    if key.startswith("UNIQUE"):
        for suffix in ("", "_1", "_2", "_3", "_3a", "_3b"):
            life.add("full", f"ALTER TABLE {root}{suffix} REPLICA IDENTITY FULL")
    life.publish(root)
    life.tables += 3
    for turn in range(chance.randrange(5, 15)):
        first, part = chance.randrange(100), chance.randrange(1, 5)
        event = {
            0: ("partitions", f"INSERT INTO {root} SELECT g, 1 + g % 3, 'v' FROM "
                f"generate_series({first}, {first + 9}) g ON CONFLICT DO NOTHING"),
            1: ("partitions", f"UPDATE {root} SET part = 1 + part % 3 WHERE id % 3 = {part % 3}"),
            2: ("partitions", f"DELETE FROM {root} WHERE id % 5 = {part}"),
            3: ("partitions", f"UPDATE {root} SET v = v || '{turn}', id = id + 100 WHERE id % 7 = {part}"),
            4: ("detach", f"ALTER TABLE {root} DETACH PARTITION {root}_2",
                f"INSERT INTO {root}_2 VALUES ('d', 2, -{turn})"),
            5: ("attach", f"INSERT INTO {root}_2 VALUES ('a', 2, {200 + turn})",
                f"ALTER TABLE {root} ATTACH PARTITION {root}_2 FOR VALUES IN (2)"),
            6: ("partitions", f"CREATE TABLE {root}_4 PARTITION OF {root} FOR VALUES IN (4)",
                f"INSERT INTO {root} VALUES ({300 + turn}, 4, 'new')"),
            7: ("partitions", f"TRUNCATE {root}_{part}"),
            8: ("partitions", f"TRUNCATE {root}", f"INSERT INTO {root} VALUES (1, 1, 'after')"),
            9: ("partitions", f"ALTER TABLE {root} ADD COLUMN c{turn} text DEFAULT 'c'",
                f"UPDATE {root} SET c{turn} = NULL WHERE id % 2 = 0"),
            10: ("partitions", f"DROP TABLE {root}_{part}"),
            11: ("via root", f"ALTER PUBLICATION {life.publication} SET (publish_via_partition_root = "
                 f"{chance.choice(['true', 'false'])})"),
        }[chance.randrange(12)]  # fmt: skip
        life.add(*event)


def _generated(life: Life) -> None:
    """Stored columns that are computed, and then no longer; from PostgreSQL 18 on virtual ones."""
    name, chance = life.name, life.chance
    virtual = ", virt int GENERATED ALWAYS AS (a - 1) VIRTUAL" if life.version >= 18 and chance.random() < 0.5 else ""
    key = chance.choice(["PRIMARY KEY", "NOT NULL"])
    life.add(
        "generated",
        f"CREATE TABLE {name} (id int {key}, a int, twice int GENERATED ALWAYS AS (a * 2) STORED{virtual}, v text)",
    )
    if key == "NOT NULL":
        life.add("generated", f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    life.publish(name)
    for number in range(chance.randrange(4, 12)):
        event = {
            0: f"INSERT INTO {name} (id, a, v) VALUES ({number}, {chance.randrange(9)}, 'v')",
            1: f"INSERT INTO {name} (id, a) SELECT g, g FROM generate_series({100 * number + 1}, {100 * number + 5}) g",
            2: f"UPDATE {name} SET a = a + 1 WHERE id % 2 = {chance.randrange(2)}",
            3: f"DELETE FROM {name} WHERE id % 3 = {chance.randrange(3)}",
            4: f"ALTER TABLE {name} ADD COLUMN g{number} text GENERATED ALWAYS AS (upper(v)) STORED",
            5: f"UPDATE {name} SET v = 'w{number}'",
        }[chance.randrange(6)]
        life.add("generated", event)
        if chance.random() < 0.1:
            life.add("drop expression", f"ALTER TABLE {name} ALTER COLUMN twice DROP EXPRESSION")
        if life.version >= 17 and chance.random() < 0.1:
            life.add("set expression", f"ALTER TABLE {name} ALTER COLUMN twice SET EXPRESSION AS (a * 3)")


def _own_types(life: Life) -> None:
    """An enum, a composite and a domain that are altered while a table uses them."""
    name, chance = life.name, life.chance
    life.add(
        "types",
        f"CREATE TYPE {name}_e AS ENUM ('a', 'b', 'c')",
        f"CREATE TYPE {name}_c AS (x int, y text)",
        f"CREATE DOMAIN {name}_d AS {name}_e",
        f"CREATE TABLE {name} (id int PRIMARY KEY, e {name}_e, c {name}_c, d {name}_d, es {name}_e[], cs {name}_c[])",
    )
    life.publish(name)
    if chance.random() < 0.5:
        life.add("types", f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    for number in range(chance.randrange(4, 12)):
        event = {
            0: ("types", f"INSERT INTO {name} VALUES ({number}, 'a', ROW(1, 'x'), 'b', '{{a,b}}', "
                f"ARRAY[ROW(1, 'y')::{name}_c])"),
            1: ("types", f"UPDATE {name} SET e = 'c', c = ROW({number}, NULL) WHERE id % 2 = 0"),
            2: ("types", f"DELETE FROM {name} WHERE id % 3 = 0"),
            3: ("enum added", f"ALTER TYPE {name}_e ADD VALUE 'v{number}' BEFORE 'b'",
                f"INSERT INTO {name} (id, e) VALUES ({100 + number}, 'v{number}')"),
            4: ("enum renamed", f"ALTER TYPE {name}_e RENAME VALUE 'a' TO 'was a'"),
            5: ("attribute added", f"ALTER TYPE {name}_c ADD ATTRIBUTE z{number} int CASCADE"),
            6: ("attribute altered", f"ALTER TYPE {name}_c RENAME ATTRIBUTE y TO w CASCADE"),
            7: ("types", f"ALTER TYPE {name}_c RENAME TO {name}_c{number}"),
            8: ("attribute dropped", f"ALTER TYPE {name}_c DROP ATTRIBUTE x"),
            9: ("types", f"ALTER DOMAIN {name}_d SET DEFAULT 'c'", f"INSERT INTO {name} (id) VALUES ({200 + number})"),
        }[chance.randrange(10)]  # fmt: skip
        life.add(*event)


def _referenced(life: Life) -> None:
    """Tables that refer to others: truncates and deletes that cascade."""
    name, chance = life.name, life.chance
    life.add(
        "cascades",
        f"CREATE TABLE {name} (id int PRIMARY KEY, v text)",
        f"CREATE TABLE {name}_child (id int PRIMARY KEY, "
        f"parent int REFERENCES {name} ON DELETE CASCADE ON UPDATE CASCADE)",
        f"CREATE TABLE {name}_log (parent int REFERENCES {name} ON DELETE SET NULL ON UPDATE CASCADE, n serial)",
        f"ALTER TABLE {name}_log REPLICA IDENTITY FULL",
    )
    life.publish(name)
    life.publish(f"{name}_child")
    life.publish(f"{name}_log")
    life.tables += 2
    for number in range(chance.randrange(4, 12)):
        first = 10 * number + 1
        event = {
            0: (f"INSERT INTO {name} SELECT g, 'p' FROM generate_series({first}, {first + 5}) g",
                f"INSERT INTO {name}_child SELECT id + 1000, id FROM {name} ON CONFLICT DO NOTHING",
                f"INSERT INTO {name}_log (parent) SELECT id FROM {name}"),
            1: (f"TRUNCATE {name} CASCADE",),
            2: ("BEGIN", f"TRUNCATE {name} CASCADE", f"INSERT INTO {name} VALUES ({first}, 'again')",
                f"INSERT INTO {name}_log (parent) VALUES ({first})", f"DELETE FROM {name}_log", "COMMIT"),
            3: (f"DELETE FROM {name} WHERE id % 3 = {chance.randrange(3)}",),
            4: (f"UPDATE {name} SET id = id + 1000 WHERE id % 2 = 0 AND id < 1000",),
            5: ("BEGIN", f"TRUNCATE {name}_child, {name}_log RESTART IDENTITY", "ROLLBACK"),
            6: ("BEGIN", f"INSERT INTO {name}_log (parent) VALUES (NULL)", "SAVEPOINT s", f"TRUNCATE {name}_log",
                "ROLLBACK TO s", f"UPDATE {name}_log SET n = n", "COMMIT"),
        }[chance.randrange(7)]  # fmt: skip
        life.add("cascades", *event)


def _deferred(life: Life) -> None:
    """Keys that change places in one statement, since their constraint is checked at the end."""
    name, chance = life.name, life.chance
    life.add(
        "deferred",
        f"CREATE TABLE {name} (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, other int NOT NULL, v text)",
        f"CREATE UNIQUE INDEX {name}_other ON {name} (other)",
        chance.choice([f"ALTER TABLE {name} REPLICA IDENTITY FULL",
                       f"ALTER TABLE {name} REPLICA IDENTITY USING INDEX {name}_other"]),
        f"INSERT INTO {name} SELECT g, -g, 'v' FROM generate_series(1, 9) g",
    )  # fmt: skip
    life.publish(name)
    for _ in range(chance.randrange(3, 9)):
        life.add(
            "deferred",
            chance.choice(
                [
                    f"UPDATE {name} SET id = 10 - id",
                    f"UPDATE {name} SET id = id + 1",
                    f"UPDATE {name} SET id = CASE id WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE id END, v = v || '!'",
                    f"UPDATE {name} SET other = other - 100 WHERE id % 2 = 0",
                    f"DELETE FROM {name} WHERE id = {chance.randrange(1, 10)}",
                    f"INSERT INTO {name} VALUES ({chance.randrange(1, 10)}, {chance.randrange(1000)}, 'n')",
                    f"UPDATE {name} SET id = id",
                ]
            ),
        )


def _toasted(life: Life) -> None:
    """Large values that are stored out of line stay while keys move, in one transaction or several."""
    name, chance = life.name, life.chance
    large = "(SELECT string_agg(md5(i::text || '{}'), '') FROM generate_series(1, 150) i)"
    life.add(
        "toast",
        f"CREATE TABLE {name} (id int PRIMARY KEY, n int, big text, doc bytea, more text)",
        f"ALTER TABLE {name} ALTER big SET STORAGE EXTERNAL, ALTER doc SET STORAGE EXTERNAL",
        f"INSERT INTO {name} SELECT g, 0, {large.format('a')} || g, convert_to({large.format('b')}, 'UTF8'), 'x' "
        "FROM generate_series(1, 4) g",
    )
    life.publish(name)
    for number in range(chance.randrange(3, 10)):
        one, other = chance.randrange(1, 9), chance.randrange(1, 9)
        event = [
            f"UPDATE {name} SET id = {other} WHERE id = {one}",
            f"UPDATE {name} SET n = n + 1 WHERE id = {one}",
            f"UPDATE {name} SET big = {large.format(number)} WHERE id = {one}",
            f"UPDATE {name} SET more = {large.format(number)}, doc = NULL WHERE id = {one}",
            f"DELETE FROM {name} WHERE id = {one}",
            f"INSERT INTO {name} VALUES ({one}, 1, {large.format(number)}) ON CONFLICT DO NOTHING",
            f"UPDATE {name} SET id = id + 10 WHERE id < 5",
            f"UPDATE {name} SET id = id - 10 WHERE id > 10",
        ]
        if chance.random() < 0.4:
            life.add("toast", "BEGIN", *chance.sample(event, 3), "COMMIT")
        else:
            life.add("toast", chance.choice(event))
        if chance.random() < 0.1:
            life.add("toast", f"ALTER TABLE {name} REPLICA IDENTITY {chance.choice(['FULL', 'DEFAULT'])}")


def _renamed(life: Life) -> None:
    """Names that are used again in one transaction: tables that change places, or are dropped and created."""
    name, chance = life.name, life.chance
    for each in (f"{name}_a", f"{name}_b"):
        life.add(
            "names", f"CREATE TABLE {each} (id int PRIMARY KEY, v text)", f"INSERT INTO {each} VALUES (1, '{each}')"
        )
        life.publish(each)
    life.tables += 1
    for number in range(chance.randrange(3, 8)):
        event = {
            0: ("BEGIN", f"ALTER TABLE {name}_a RENAME TO {name}_x", f"ALTER TABLE {name}_b RENAME TO {name}_a",
                f"ALTER TABLE {name}_x RENAME TO {name}_b",
                f"INSERT INTO {name}_a VALUES ({10 + number}, 'now a')", "COMMIT"),
            1: ("BEGIN", f"INSERT INTO {name}_a VALUES ({30 + number}, 'gone')", f"DROP TABLE {name}_a",
                f"CREATE TABLE {name}_a (v text, id bigint PRIMARY KEY)",
                f"INSERT INTO {name}_a VALUES ('new', {number})", "COMMIT"),
            2: (f"INSERT INTO {name}_a VALUES ({50 + number}, 'a')", f"UPDATE {name}_b SET v = v || 'b'"),
            3: (f"ALTER TABLE {name}_a SET SCHEMA other", f"CREATE TABLE {name}_a (id int PRIMARY KEY, w int)",
                f"INSERT INTO {name}_a VALUES (1, 1)",
                f"INSERT INTO other.{name}_a VALUES ({70 + number}, 'moved')"),
            4: (f"DROP TABLE IF EXISTS other.{name}_a",),
            5: ("BEGIN", f"ALTER TABLE {name}_a RENAME TO {name}_y",
                f"CREATE TABLE {name}_a (LIKE {name}_y INCLUDING ALL)",
                f"INSERT INTO {name}_a VALUES ({90 + number}, 'like')", f"DROP TABLE {name}_y", "COMMIT"),
            6: ("BEGIN", f"DROP TABLE {name}_b", "ROLLBACK", f"DELETE FROM {name}_b WHERE id > 20"),
        }[chance.randrange(7)]  # fmt: skip
        life.add("names", *event)


def _rotated(life: Life) -> None:
    """Tables that take the names of others, which are dropped or kept, while both have changes."""
    name, chance = life.name, life.chance
    new, old, older = f"{name}_new", f"{name}_old", f"{name}_older"
    key = chance.choice(["id int PRIMARY KEY", "id int NOT NULL"])

    def created(table: str, columns: str = "v text") -> list[str]:
        identity = [] if "PRIMARY" in key else [f"ALTER TABLE {table} REPLICA IDENTITY FULL"]
        return [f"CREATE TABLE {table} ({key}, {columns})", *identity]

    def publish(table: str) -> list[str]:
        return [f"ALTER PUBLICATION {life.publication} ADD TABLE {table}"] if life.is_listed else []

    def filled(number: int) -> list[str]:
        """Fill the new table, by a query of the one that it replaces, while that is written, too."""
        return [
            *created(new, chance.choice(["v text", "v text", "w int, v text"])),
            *publish(new),
            f"INSERT INTO {new} (id, v) SELECT id, 'from ' || v FROM {name} ON CONFLICT DO NOTHING",
            f"INSERT INTO {name} (id, v) VALUES ({100 + number}, 'meanwhile') ON CONFLICT DO NOTHING",
            f"UPDATE {new} SET v = v || '!' WHERE id % 2 = {number % 2}",
        ]

    life.add("rotations", *created(name), *publish(name), f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    for number in range(chance.randrange(3, 8)):
        swap = [f"ALTER TABLE {name} RENAME TO {old}", f"ALTER TABLE {new} RENAME TO {name}"]
        begin, end = (["BEGIN"], ["COMMIT"]) if chance.random() < 0.7 else ([], [])
        event = {
            0: [*filled(number), *begin, *swap, f"DROP TABLE {old}", *end],
            1: [*filled(number), *begin, f"DROP TABLE {name}", swap[1], *end],
            2: [f"DROP TABLE IF EXISTS {older}", *filled(number), *begin, *swap, *end,
                f"INSERT INTO {old} (id, v) VALUES ({300 + number}, 'late') ON CONFLICT DO NOTHING",
                f"ALTER TABLE {old} RENAME TO {older}"],
            3: [f"INSERT INTO {name} (id, v) VALUES ({500 + number}, 'n'), ({600 + number}, NULL)"],
            4: [f"UPDATE {name} SET v = v || '{number}' WHERE id % 2 = {number % 2}",
                f"DELETE FROM {name} WHERE id = 2"],
            5: ["BEGIN", *filled(number), *swap, f"DELETE FROM {name} WHERE id % 3 = 1", f"DROP TABLE {old}",
                chance.choice(["COMMIT", "COMMIT", "ROLLBACK"])],
            6: [f"DROP TABLE IF EXISTS {older}", *begin, f"ALTER TABLE {name} RENAME TO {older}", *created(name),
                *publish(name), f"INSERT INTO {name} (id, v) SELECT id, v FROM {older} WHERE id < 100", *end],
        }[chance.randrange(7)]  # fmt: skip
        life.add("rotations", *event)
        if chance.random() < 0.5:
            life.add("rotations", f"INSERT INTO {name} (id, v) VALUES ({700 + number}, 'after')")
    life.tables += 1


def _odd_names(life: Life) -> None:
    """Names that need quotes, or that differ little."""
    name = f'"{life.name} It\'s ""Odd"" ü.é"'
    life.add("odd names", f'CREATE TABLE {name} ("a b" int PRIMARY KEY, "sel""ect" text, "é.x" int, "`tick`" text)')
    life.publish(name)
    for number in range(life.chance.randrange(2, 6)):
        life.add("odd names", f"INSERT INTO {name} VALUES ({number}, 'x{number}', 1, '`')")
        life.add("odd names", f'UPDATE {name} SET "a b" = "a b" + 10, "é.x" = NULL WHERE "a b" % 2 = 1')


def _colliding(life: Life) -> None:
    """Columns that are named as those that a table gets, or that differ in case alone."""
    name = life.name
    columns = life.chance.choice(
        ["_op text, _seq int", '"V" text, v text', "_commit_lsn bigint", "_untyped text", "_before int"]
    )
    life.add("collisions", f"CREATE TABLE {name} (id int PRIMARY KEY, {columns})", f"INSERT INTO {name} VALUES (1)")
    life.publish(name)
    life.add("collisions", f"INSERT INTO {name} VALUES (2)", f"DELETE FROM {name} WHERE id = 1")


def _wide(life: Life) -> None:
    """As many columns as a table can have."""
    name, last = life.name, 1599
    columns = ", ".join(f"c{number} boolean" for number in range(1, last + 1))
    life.add("wide", f"CREATE TABLE {name} (id int PRIMARY KEY, {columns})")
    life.publish(name)
    for number in range(3):
        life.add("wide", f"INSERT INTO {name} (id, c1, c{last}) VALUES ({number}, true, false)")
        life.add("wide", f"UPDATE {name} SET c{life.chance.randrange(2, last)} = true")


def _no_columns(life: Life) -> None:
    """A table without columns, which has rows all the same."""
    life.add("no columns", f"CREATE TABLE {life.name} ()")
    life.publish(life.name)
    for _ in range(2):
        life.add("no columns", f"INSERT INTO {life.name} DEFAULT VALUES")
    if life.chance.random() < 0.5:
        life.add(
            "no columns", f"ALTER TABLE {life.name} ADD COLUMN a int DEFAULT 7", f"INSERT INTO {life.name} VALUES (1)"
        )


def _inherited(life: Life) -> None:
    """Tables that inherit columns, and whose rows a query of their parents shows."""
    name = life.name
    life.add(
        "inherits",
        f"CREATE TABLE {name} (id int PRIMARY KEY, v text)",
        f"CREATE TABLE {name}_sub (PRIMARY KEY (id), w int) INHERITS ({name})",
    )
    life.publish(f"ONLY {name}")
    life.publish(f"{name}_sub")
    life.tables += 1
    for number in range(life.chance.randrange(2, 6)):
        life.add(
            "inherits",
            f"INSERT INTO {name}_sub VALUES ({number}, 's', 1)",
            f"INSERT INTO {name} VALUES ({number}, 'p')",
        )
        life.add(
            "inherits",
            f"UPDATE {name} SET v = v || '{number}' WHERE id % 2 = 0",
            f"ALTER TABLE {name} ADD a{number} int",
        )
    life.add("inherits", f"ALTER TABLE {name}_sub NO INHERIT {name}", f"DELETE FROM {name}")


LIVES: Final[Mapping[str, tuple[Callable[[Life], None], float]]] = {
    "ordinary": (_ordinary, 10),
    "short": (_short, 5),
    "partitioned": (_partitioned, 1),
    "generated": (_generated, 1),
    "types": (_own_types, 1),
    "cascades": (_referenced, 1),
    "deferred": (_deferred, 0.7),
    "toast": (_toasted, 1),
    "names": (_renamed, 0.7),
    "rotations": (_rotated, 0.7),
    "odd names": (_odd_names, 0.5),
    "collisions": (_colliding, 0.4),
    "wide": (_wide, 0.1),
    "no columns": (_no_columns, 0.2),
    "inherits": (_inherited, 0.4),
}
"""Lives by name, each with how often it is drawn."""
