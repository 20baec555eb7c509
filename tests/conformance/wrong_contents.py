"""Clients that are wrong about single messages: rows, values, descriptions, truncates, logical messages."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pgoutput_construct as pgo
from pgoutput_construct.wire import Lsn
from tests.conformance.model_client import ModelClient, Refused


class IgnoresInserts(ModelClient):
    """Reports no inserts."""

    def row(self, relation: Any, operation: str, new: Any, old: Any) -> dict[str, Any]:
        made = super().row(relation, operation, new, old)
        return {**made, "operation": "update"} if operation == "insert" else made


class TakesUpdatesForInserts(ModelClient):
    """Reports an update as an insert."""

    def row(self, relation: Any, operation: str, new: Any, old: Any) -> dict[str, Any]:
        made = super().row(relation, operation, new, old)
        return {**made, "operation": "insert"} if operation == "update" else made


class LeavesOutDeletes(ModelClient):
    """Reports no old row."""

    def old_row(self, relation: Any, values: Any, is_key: bool) -> dict[str, Any]:
        return {}


class SortsChanges(ModelClient):
    """Reports the changes of a transaction sorted by operation."""

    def lines(self, changes: list[Any]) -> Any:
        yield from sorted(super().lines(changes), key=lambda line: line["operation"])


class NamesWithoutSchema(ModelClient):
    """Knows tables by their names alone."""

    def describe(self, message: Any) -> None:
        known = next((each for each in self.relations.values() if each.name == message.name), message)
        self.relations[message.relation_oid] = known


class RefusesTypes(ModelClient):
    """Does not know Type messages."""

    def type(self, message: Any) -> None:
        raise Refused("an unknown message")


class RefusesUnusedRelations(ModelClient):
    """Takes a Relation for what must be followed by a change of its table."""

    last: Any = None

    def dispatch(self, message: Any) -> None:
        if self.last is not None and getattr(message, "relation_oid", None) != self.last:
            raise Refused("a Relation without a change after it")
        self.last = message.relation_oid if isinstance(message, pgo.Relation) else None
        super().dispatch(message)


class DatesOfPython(ModelClient):
    """Converts commit times to datetime."""

    def begins(self, message: Any) -> None:
        super().begins(message)
        datetime(2000, 1, 1, tzinfo=UTC) + timedelta(microseconds=message.commit_time)


class FoldsNames(ModelClient):
    """Takes names in lower case, without blanks."""

    def table(self, relation: Any) -> str:
        return super().table(relation).lower()

    def name(self, column: Any) -> str:
        return super().name(column).lower()


class SkipsEmptyRows(ModelClient):
    """Skips rows without columns."""

    def committed(self, changes: list[Any], commit_lsn: Lsn, end: Lsn) -> None:
        kept = [each for each in changes if not isinstance(each[1], pgo.Insert) or each[1].new]
        super().committed(kept, commit_lsn, end)


class Latin1(ModelClient):
    """Reads text as Latin-1, without blanks at the ends."""

    def text(self, value: bytes, column: Any) -> Any:
        return value.decode("latin-1").strip()

    def value(self, value: Any, column: Any) -> Any:
        if isinstance(value, pgo.Binary) and column.type_oid == 25:
            return self.text(bytes(value), column)
        return super().value(value, column)


class PythonValues(ModelClient):
    """Converts values by their types, hastily: bool("f"), float(numeric), small integers, str(None)."""

    def text(self, value: bytes, column: Any) -> Any:
        text = value.decode()
        convert: dict[int, Any] = {16: bool, 20: lambda t: int(float(t)), 1700: lambda t: json.loads(str(float(t)))}
        convert |= {700: lambda t: str(float(t)), 701: lambda t: str(Decimal(t).normalize())}
        convert |= dict.fromkeys((114, 3802), lambda t: json.dumps(json.loads(t)))
        convert |= {21: abs, 23: int} | {17: lambda t: t.lstrip("\\x"), 1042: str.rstrip, 869: lambda t: f"{t}/32"}
        convert |= dict.fromkeys((1082, 1083, 1114, 1184, 1186, 1266), lambda t: t.replace(" BC", ""))
        convert |= dict.fromkeys((1007, 1009), lambda t: t.split(","))
        return convert.get(column.type_oid, str)(text)


class TextTypesOnly(ModelClient):
    """Reads values of types that are not built in as NULL."""

    def value(self, value: Any, column: Any) -> Any:
        return None if column.type_oid >= 16384 else super().value(value, column)


class BinaryAsText(ModelClient):
    """Reads values in binary format as text."""

    def value(self, value: Any, column: Any) -> Any:
        return bytes(value).decode("latin-1") + "?" if isinstance(value, pgo.Binary) else super().value(value, column)


class AllBinary(ModelClient):
    """Takes all values for binary where it has asked for it."""

    def value(self, value: Any, column: Any) -> Any:
        if isinstance(value, bytes) and not isinstance(value, pgo.Binary) and self.options["binary"]:
            return {"binary": value.hex()}
        return super().value(value, column)


class EmptyForNull(ModelClient):
    """Takes NULL for the empty text."""

    def value(self, value: Any, column: Any) -> Any:
        return "" if value is None else super().value(value, column)


class ShiftsAfterUnchanged(ModelClient):
    """Leaves out a value that was not sent, and takes the next ones for those of the columns before them."""

    def new_row(self, relation: Any, values: Any) -> dict[str, Any]:
        sent = [value for value in values if value is not pgo.UNCHANGED]
        pairs = zip(relation.columns, sent, strict=False)
        return {self.name(column): self.value(value, column) for column, value in pairs}


class LosesOldKeys(ModelClient):
    """Keeps of an update its new row alone, and of a delete the whole tuple."""

    def row(self, relation: Any, operation: str, new: Any, old: Any) -> dict[str, Any]:
        return super().row(relation, operation, new, None if operation == "update" else old)


class NullsOfOldKeys(ModelClient):
    """Takes the NULLs of the columns outside an old key for values."""

    def old_row(self, relation: Any, values: Any, is_key: bool) -> dict[str, Any]:
        return super().old_row(relation, values, False) | (
            {self.name(c): None for c in relation.columns if not c.flags & 1} if is_key else {}
        )


class KeyIsTheFirstColumn(ModelClient):
    """Takes the first column for the key."""

    def old_row(self, relation: Any, values: Any, is_key: bool) -> dict[str, Any]:
        return (
            super().old_row(relation, values, is_key)
            if not is_key
            else {self.name(relation.columns[0]): self.value(values[0], relation.columns[0])}
        )


class LosesNullsOfOldRows(ModelClient):
    """Leaves NULLs out of old rows."""

    def old_row(self, relation: Any, values: Any, is_key: bool) -> dict[str, Any]:
        return {name: value for name, value in super().old_row(relation, values, is_key).items() if value is not None}


class EqualRowsAreOne(ModelClient):
    """Skips a change that equals the one before."""

    def lines(self, changes: list[Any]) -> Any:
        before: Any = None
        for line in super().lines(changes):
            if line != before:
                yield line
            before = line


class RefusesNoIdentity(ModelClient):
    """Wants each table to have a replica identity of its key."""

    def describe(self, message: Any) -> None:
        if message.replica_identity not in ("d", "f"):
            raise Refused("an unknown replica identity")
        super().describe(message)


class FirstDescriptionStays(ModelClient):
    """Keeps the first description of each table."""

    def describe(self, message: Any) -> None:
        self.relations.setdefault(message.relation_oid, message)

    def new_row(self, relation: Any, values: Any) -> dict[str, Any]:
        pairs = zip(relation.columns, values, strict=False)
        return {self.name(column): self.value(value, column) for column, value in pairs if value is not pgo.UNCHANGED}


class LastDescriptionCounts(ModelClient):
    """Reads all changes of a transaction by the descriptions at its end."""

    def lines(self, changes: list[Any]) -> Any:
        for message in changes:
            if isinstance(message, pgo.Relation):
                self.describe(message)
        yield from super().lines([each for each in changes if not isinstance(each, pgo.Relation)])

    def new_row(self, relation: Any, values: Any) -> dict[str, Any]:
        pairs = zip(relation.columns, values, strict=False)
        return {self.name(column): self.value(value, column) for column, value in pairs if value is not pgo.UNCHANGED}


class OldColumnsStay(ModelClient):
    """Adds the columns of earlier descriptions to those of later ones."""

    def describe(self, message: Any) -> None:
        known = self.relations.get(message.relation_oid)
        if known == message:
            return
        kept = () if known is None or known.name != message.name else known.columns
        self.columns = {**getattr(self, "columns", {}), message.relation_oid: kept}
        super().describe(message)

    def new_row(self, relation: Any, values: Any) -> dict[str, Any]:
        before = {self.name(each): None for each in self.columns.get(relation.relation_oid, ())}
        return {**before, **super().new_row(relation, values)}


class ForgetsOtherTables(ModelClient):
    """Forgets all tables when one is described again."""

    def describe(self, message: Any) -> None:
        if message.relation_oid in self.relations:
            self.relations.clear()
        super().describe(message)


class RefusesModifiers(ModelClient):
    """Wants type modifiers to be lengths."""

    def describe(self, message: Any) -> None:
        if any(column.type_modifier > 1000 for column in message.columns):
            raise Refused("a length of more than 1000")
        super().describe(message)


class TruncatesFirst(ModelClient):
    """Reports the first table of a truncate alone, and truncates before all other changes."""

    def lines(self, changes: list[Any]) -> Any:
        lines = [*super().lines(changes)]
        truncates = [line for line in lines if line["operation"] == "truncate"]
        yield from truncates[:1]
        yield from (line for line in lines if line["operation"] != "truncate")


class RefusesTruncateOptions(ModelClient):
    """Knows truncates without options."""

    def change(self, message: Any) -> None:
        if isinstance(message, pgo.Truncate) and message.options:
            raise Refused("unknown options of a truncate")
        super().change(message)


class MessagesAreTransactional(ModelClient):
    """Takes each message to belong to the transaction that comes next, and takes contents for C strings."""

    def logical_message(self, message: Any) -> None:
        self.waiting = [*getattr(self, "waiting", ()), message]

    def lines(self, changes: list[Any]) -> Any:
        waiting, self.waiting = getattr(self, "waiting", []), []
        yield from super().lines([*waiting, *changes])

    def content(self, content: bytes) -> str:
        return content.split(b"\0")[0].decode("latin-1")


class RefusesUnchangedInInserts(ModelClient):
    """Wants all values of an inserted row."""

    def change(self, message: Any) -> None:
        if isinstance(message, pgo.Insert) and pgo.UNCHANGED in message.new:
            raise Refused("an insert without a value")
        super().change(message)


class KeepsTypes(ModelClient):
    """Keeps the first type of each column."""

    def __init__(self, *arguments: Any) -> None:
        self.types: dict[str, int] = {}
        super().__init__(*arguments)

    def text(self, value: bytes, column: Any) -> Any:
        return int(value) if self.types.setdefault(column.name, column.type_oid) == 23 else value.decode()


class KeepsIdentities(ModelClient):
    """Keeps the first key of each table, and reports of an old row its columns alone."""

    def __init__(self, *arguments: Any) -> None:
        self.keys: dict[str, set[str]] = {}
        super().__init__(*arguments)

    def old_row(self, relation: Any, values: Any, is_key: bool) -> dict[str, Any]:
        keys = self.keys.setdefault(relation.name, {self.name(c) for c in relation.columns if c.flags & 1})
        return {name: value for name, value in super().old_row(relation, values, is_key).items() if name in keys}
