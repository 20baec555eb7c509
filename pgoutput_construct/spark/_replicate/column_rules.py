"""Rules of columns: which are excluded, masked, or have another name; found again when tables or columns are renamed.

A rule names a column as it was called when the rule was given. It must never be evaded by an ALTER: a column whose
values were masked stays masked under another name, and an excluded one stays excluded. So a rule applies to a table
that ever had the name in the log, or that it applied to before (by OID, in the warehouse's notes), and in this to

- the column of that name, now or in a former description of the table;
- the column with the attribute number that such a one has or had (``Rule.seen``, also in the notes).

Where attribute numbers are unknown, which is so between a Relation and the next reading of the catalog, a column that
is called otherwise may be the renamed one. ``_check_decided`` refuses the table until that is known: PostgreSQL sends
columns in the order of their numbers, so a description is decided where it begins with the same names, up to the last
column with a rule, as one before it.

Rules are applied to the tables of a log as it is opened (``ColumnRules.applied_to``): an excluded column is not in the
table at all, so nothing decodes it, a masked one is a string, which ``staging`` masks before it stores changes, and a
renamed one has its new name alone. No other code of this room knows of them. A dataset's shape has what its columns
were written with (``VersionShape.rules``), so that data of other rules are written again, not continued.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa

from pgoutput_construct.columnar.column_masks import Mask, MaskKind, fingerprint, new_nonce
from pgoutput_construct.errors import ChangeLogError, PgoutputError
from pgoutput_construct.lake._notes import Dataset
from pgoutput_construct.pgtypes.builtin_types import TYPE_NAMES
from pgoutput_construct.pgtypes.column_reader import ColumnReader
from pgoutput_construct.pgtypes.family import CannotHold
from pgoutput_construct.spark._log_view.log_tables import LogTables, UnreadableTable
from pgoutput_construct.spark._log_view.replicated_tables import Table
from pgoutput_construct.spark._log_view.table_columns import ColumnDefault
from pgoutput_construct.spark._open_log import OpenLog
from pgoutput_construct.stream.identifiers import full_name, quote_identifier, split_column
from pgoutput_construct.stream.relations import Description
from pgoutput_construct.wire.messages import RelationColumn
from pgoutput_construct.wire.protocol import RelationReplicaIdentity

_PLAIN: Final = "plain"
"""How a mask or an exclusion is lifted."""


class RuleKind(StrEnum):
    """What a rule does with a column."""

    EXCLUDED = "excluded"
    MASKED = "masked"
    RENAMED = "renamed"
    PLAIN = "plain"
    """Nothing: an earlier rule is lifted, or it is known that the column is not another one that was renamed."""


class ColumnName(NamedTuple):
    """The name of a column."""

    table: str
    """Schema and name of its table, as SQL writes them."""
    column: str
    """Its own name."""

    def __str__(self) -> str:
        return f"{self.table}.{quote_identifier(self.column)}"


@dataclass(frozen=True)
class Rule:
    """What is done with a column."""

    kind: RuleKind
    mask: Mask | None = None
    """The mask of a masked one."""
    salt_mark: str = ""
    """The fingerprint of the mask's salt."""
    name: str = ""
    """The name of a renamed one in the warehouse."""
    seen: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The tables that it has applied to, by OID, and the attribute numbers of columns there, as far as known."""

    @property
    def label(self) -> str:
        """What notes and errors call it; different for different values. It has no secret."""
        if self.name:
            return f"{self.kind} to {self.name}"
        if self.mask is None:
            return "" if self.kind is RuleKind.PLAIN else str(self.kind)
        if self.mask.kind is MaskKind.TEXT:
            return f"{MaskKind.TEXT}({self.mask.constant})"
        return f"{self.mask.kind} {self.salt_mark}".strip()

    @property
    def words(self) -> str:
        """What is done with the column, as a part of a sentence."""
        if self.mask is not None:
            return f"masked by {self.mask.kind}"
        return self.label or "without a rule"

    @property
    def keeps_keys(self) -> bool:
        """Whether rows can be told apart by the column as before."""
        return self.mask.keeps_keys if self.mask is not None else self.kind is not RuleKind.EXCLUDED

    def to_json(self, name: ColumnName) -> dict[str, Any]:
        """Return it as JSON values; a salt is not among them."""
        mask = self.mask and {"kind": str(self.mask.kind), "constant": self.mask.constant, "origin": self.mask.origin}
        return {
            **name._asdict(),
            "kind": str(self.kind),
            "mask": mask,
            "salt_mark": self.salt_mark,
            "name": self.name,
            "seen": {str(oid): list(numbers) for oid, numbers in self.seen.items()},
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "tuple[ColumnName, Rule]":
        """Read the result of ``to_json``; raise KeyError, TypeError or ValueError for anything else."""
        given = content["mask"]
        mask = given and Mask(MaskKind(given["kind"]), given["constant"], origin=given["origin"])
        seen = {int(oid): tuple(map(int, numbers)) for oid, numbers in content["seen"].items()}
        name = ColumnName(content["table"], content["column"])
        return name, cls(RuleKind(content["kind"]), mask, content["salt_mark"], str(content.get("name", "")), seen)


class RuledLog(NamedTuple):
    """A log as a warehouse has its tables."""

    log: OpenLog
    """The log: its tables are without excluded columns, masked ones are strings. Tables that a rule cannot be applied
    to are refused (``LogTables.refused``).
    """
    masks: Mapping[str, Mapping[str, Mask]]
    """The masks of columns, by the names of tables and columns."""
    sources: Mapping[str, Mapping[str, str]]
    """The names at the source of renamed columns, by the names of tables and columns."""
    rules: "ColumnRules"
    """The rules, with what they have been applied to."""


@dataclass(frozen=True)
class ColumnRules:
    """The rules of a warehouse, by the columns that they were given for."""

    rules: Mapping[ColumnName, Rule] = field(default_factory=dict)

    @classmethod
    def parse(
        cls, excluded: Collection[str], masks: Iterable[tuple[str, str]], names: Iterable[tuple[str, str]] = ()
    ) -> "ColumnRules":
        """Read rules as a caller gives them, and the salts that these name.

        Args:
            excluded: Columns (``schema.table.column``).
            masks: Columns and their masks, as ``Mask.parse`` reads them, or ``plain`` to lift a rule.
            names: Columns and the names that they have in the warehouse.

        Raises:
            PgoutputError: An invalid name or mask, a salt that cannot be read, or two rules for one column. It does not
                repeat what may be a salt.
        """
        rules: dict[ColumnName, Rule] = {}
        nonces: dict[bytes, str] = {}

        def add(text: str, parsed: Callable[[], Rule]) -> None:
            name = ColumnName(*split_column(text))
            if name in rules:
                raise PgoutputError(f"{name}: a column has one rule: exclude it, or give it one mask, or another name")
            try:
                rules[name] = parsed()
            except PgoutputError as error:
                raise PgoutputError(f"the mask of {name}: {error}") from None

        for text in excluded:
            add(text, partial(Rule, RuleKind.EXCLUDED))
        for text, mask in masks:
            add(text, partial(_masking, mask, nonces))
        for text, chosen in names:
            if not chosen:
                raise PgoutputError(f"{text}: the name of a column is not empty")
            add(text, partial(Rule, RuleKind.RENAMED, name=chosen))
        return cls(rules)

    @classmethod
    def from_notes(cls, notes: Iterable[Mapping[str, Any]]) -> "ColumnRules":
        """Return the rules in the notes of a warehouse, without salts; raise PgoutputError for invalid ones."""
        try:
            return cls(dict(map(Rule.from_json, notes)))
        except (KeyError, TypeError, ValueError) as error:
            raise PgoutputError(
                f"the notes of the warehouse have invalid rules of columns: {type(error).__name__}: {error}; give the "
                "rules to another warehouse"
            ) from None

    def to_notes(self) -> tuple[dict[str, Any], ...]:
        """Return the rules for the notes of a warehouse."""
        return tuple(rule.to_json(name) for name, rule in self.rules.items())

    def joined_with(
        self, noted: "ColumnRules", datasets: Collection[Dataset], resync: Collection[str], where: str
    ) -> "ColumnRules":
        """Return the rules of a warehouse after a run is given these: rules that are not given stay as they are.

        Args:
            noted: Those in its notes.
            datasets: Its datasets.
            resync: The tables that are written from scratch, whose rules may change.
            where: The warehouse, for messages.

        Raises:
            PgoutputError: A rule differs from that of a column which the warehouse has already, or a salt is missing.
        """
        rules = dict(noted.rules)
        for name, rule in self.rules.items():
            known = noted.rules.get(name)
            joined = rule
            for other in [known] if known is not None else noted.rules.values():
                joined = _with_mark_of(joined, other)
            if joined.label != ("" if known is None else known.label) and name.table not in resync:
                _check_unwritten(name, joined, known, datasets, where)
            rules[name] = joined if known is None else replace(joined, seen=known.seen)
        return ColumnRules({name: _with_salt(name, rule, where) for name, rule in rules.items()})

    @property
    def has_unseen(self) -> bool:
        """Whether some rule has not been applied to a table yet."""
        return any(not rule.seen for rule in self.rules.values() if rule.kind is not RuleKind.PLAIN)

    def known_of(self, noted: "ColumnRules", where: str) -> "ColumnRules":
        """Return the rules in the notes of a warehouse, with the salts that these have, or that can be read.

        Unlike for ``joined_with``, salts may stay unknown, and no rule may differ.

        Args:
            noted: The rules in the notes.
            where: The warehouse, for messages.

        Raises:
            PgoutputError: A rule differs from that in the notes.
        """
        rules = dict(noted.rules)
        for name, rule in self.rules.items():
            known = noted.rules.get(name, Rule(RuleKind.PLAIN))
            joined = _with_mark_of(rule, known)
            if joined.label != known.label:
                is_salt = joined.words == known.words
                what = "masked with another salt" if is_salt else f"{known.words} there, not {rule.words}"
                raise PgoutputError(f"{where}: {name} is {what}")
            rules[name] = replace(joined, seen=known.seen)
        for name, rule in rules.items():
            if rule.mask is not None and rule.mask.origin:
                with suppress(PgoutputError):
                    rules[name] = _with_salt(name, rule, where)
        return ColumnRules(rules)

    @property
    def salts(self) -> tuple[bytes, ...]:
        """The known salts of masks."""
        found = (rule.mask.salt for rule in self.rules.values() if rule.mask is not None)
        return tuple(sorted({salt for salt in found if salt is not None}))

    def forget_tables(self) -> "ColumnRules":
        """Return the rules without what they have been applied to: OIDs of another log say nothing."""
        return ColumnRules({name: replace(rule, seen={}) for name, rule in self.rules.items()})

    def applied_to(self, log: OpenLog) -> RuledLog:
        """Return a log as the warehouse has its tables."""
        if not self.rules:
            return RuledLog(log, {}, {}, self)
        opened, masks, seen = log.opened, dict[str, Mapping[str, Mask]](), dict(self.rules)
        sources = dict[str, Mapping[str, str]]()
        tables, refused = dict[str, Table](), dict(opened.refused)
        for qualified, table in opened.tables.items():
            try:
                found = _find_columns(seen, opened, table)
                if not found:
                    tables[qualified] = table
                    continue
                rules = {column: seen[name] for column, name in found.items()}
                _check_key(table, found, seen)
                tables[qualified] = _ruled_table(table, rules)
                masks[qualified] = {column: rule.mask for column, rule in rules.items() if rule.mask is not None}
                sources[qualified] = {rule.name: column for column, rule in rules.items() if rule.name}
                seen |= _with_seen(seen, table, found)
            except PgoutputError as error:
                refused[qualified] = UnreadableTable(table.relation_oid, table.relation_oids, table.dropped, error)
        ruled = copy(log)
        ruled.opened = replace(opened, tables=tables, refused=refused)
        return RuledLog(ruled, masks, sources, ColumnRules(seen))

    def check(self, opened: LogTables) -> Iterator[str]:
        """Yield what is not there yet of what the rules name: tables that the log may have later.

        Raises PgoutputError for a column that a table of the log does not have, or that must stay as it is.
        """
        for qualified, table in opened.tables.items():
            found = _find_columns(self.rules, opened, table, decides=False)
            _check_key(table, found, self.rules)
            for name, rule in self.rules.items():
                is_unknown = name.table == qualified and name not in found.values() and not rule.seen
                if is_unknown and name.column not in {*found, *table.columns.names}:  # plain ones are not found
                    columns = ", ".join(map(quote_identifier, table.current))
                    raise ChangeLogError(f"{qualified} has no column {quote_identifier(name.column)}: it has {columns}")
        known = {each for table in opened.tables.values() for each in _names_of(opened, table)}
        for name, rule in self.rules.items():
            if name.table not in known and not rule.seen:
                yield f"the log has no table {name.table} yet, whose column {quote_identifier(name.column)} has a rule"


def _masking(mask: str, nonces: dict[bytes, str]) -> Rule:
    if mask == _PLAIN:
        return Rule(RuleKind.PLAIN)
    parsed = Mask.parse(mask)
    if parsed.salt is None:
        return Rule(RuleKind.MASKED, parsed)
    return Rule(RuleKind.MASKED, parsed, fingerprint(parsed.salt, nonces.setdefault(parsed.salt, new_nonce())))


def _with_mark_of(rule: Rule, known: Rule) -> Rule:
    """Return a rule with the fingerprint of a known one, if its salt is the same."""
    if rule.mask is None or rule.mask.salt is None or not known.salt_mark:
        return rule
    mark = fingerprint(rule.mask.salt, known.salt_mark.partition(":")[0])
    return replace(rule, salt_mark=mark) if mark == known.salt_mark else rule


def _with_salt(name: ColumnName, rule: Rule, where: str) -> Rule:
    """Return a rule with its salt, which is read where it was read before; raise PgoutputError if it is not known."""
    mask = rule.mask
    if mask is None or mask.kind is not MaskKind.SHA256 or mask.salt is not None:
        return rule
    if not mask.origin:
        raise PgoutputError(
            f"{where}: {name} is masked by sha256 there, whose salt is not stored: give it again with --mask (masks=), "
            "best as sha256($NAME) or sha256(@FILE)"
        )
    try:
        found = Mask.salted(mask.origin)
    except PgoutputError as error:
        raise PgoutputError(f"{where}: {name} is masked by sha256 there: {error}") from None
    assert found.salt is not None
    if fingerprint(found.salt, rule.salt_mark.partition(":")[0]) != rule.salt_mark:
        raise PgoutputError(
            f"{where}: {name} is masked with another salt there than that of {mask.origin}: restore that salt, or give "
            f"--mask (masks=) with the new one, and write the table from scratch: --resync {name.table} (resync=)"
        )
    return replace(rule, mask=found)


def _check_unwritten(
    name: ColumnName, rule: Rule, known: Rule | None, datasets: Collection[Dataset], where: str
) -> None:
    """Raise PgoutputError for another rule than that of a column that the warehouse has."""
    for dataset in datasets:
        version = dataset.version
        shape = version.shape
        has_column = version.table == name.table and name.column in {*shape.columns, *shape.rules}
        if has_column and shape.rules.get(name.column, "") == rule.label:
            continue  # by a rule that was given for a former name
        if has_column or (known is not None and version.oid in known.seen):
            is_salt = known is not None and known.words == rule.words and rule.mask is not None and rule.mask.salt
            now = (known or Rule(RuleKind.PLAIN)).words
            what = "masked with another salt" if is_salt else f"{now} there, not {rule.words}"
            raise PgoutputError(
                f"{where}: {name} is {what}: omit the option to keep the column as it is, or write the table, and its "
                f"history, from scratch: --resync {version.table} (resync=)"
            )


def _descriptions(opened: LogTables, table: Table) -> list[tuple[Description, tuple[str, ...]]]:
    """Return the descriptions of a table's rows in the order of the log, each with its columns' names in the table."""
    known = opened.plan.history.descriptions
    return sorted(((known[index], names) for index, names in table.names.items()), key=lambda each: each[0].seq)


def _names_of(opened: LogTables, table: Table) -> set[str]:
    """Return the names that a table has had in the log."""
    return {table.qualified, *(full_name(description.relation) for description, _ in _descriptions(opened, table))}


def _find_columns(
    rules: Mapping[ColumnName, Rule], opened: LogTables, table: Table, decides: bool = True
) -> dict[str, ColumnName]:
    """Return the columns of a table that have rules, and what these were given for.

    Raises ChangeLogError where that is not decided, unless not ``decides``.
    """
    names, oids = _names_of(opened, table), set(table.relation_oids)
    mine = {name: rule for name, rule in rules.items() if name.table in names or not oids.isdisjoint(rule.seen)}
    ruled = {name: rule for name, rule in mine.items() if rule.kind is not RuleKind.PLAIN}
    described = _descriptions(opened, table)
    found = {name.column: name for name in ruled if name.column in table.columns.names}
    for name, rule in ruled.items():
        numbers = rule.seen.get(table.relation_oid, ())
        for column, number in table.numbers.items():
            if number in numbers and column in table.columns.names:
                found.setdefault(column, name)
        for description, called in described:
            for sent, column in zip(description.relation.columns, called, strict=True):
                if sent.name == name.column:
                    found.setdefault(column, name)
    for name in {each for each in found.values() if rules[each].kind is RuleKind.RENAMED}:
        seen = rules[name].seen.get(table.relation_oid, ())
        ranks = {
            column: (column not in table.current, table.numbers.get(column) not in seen, column != name.column)
            for column, each in found.items()
            if each == name
        }
        for column in ranks.keys() - {min(ranks, key=lambda each: ranks[each])}:
            del found[column]  # a name is that of one column: of one that was dropped, it is another's now
    if decides and ruled:
        _check_decided({name.column for name in mine}, ruled, found, opened, table)
    return found


def _check_decided(
    explicit: Collection[str],
    rules: Mapping[ColumnName, Rule],
    found: Collection[str],
    opened: LogTables,
    table: Table,
) -> None:
    """Raise ChangeLogError for a description of which it is unknown which column has a rule.

    Args:
        explicit: The names that rules have been given for, ``plain`` ones, too.
        rules: The rules of the table, without these.
        found: The columns that have rules, by their names in the table.
        opened: The log.
        table: The table.
    """
    known = {name.column for name, rule in rules.items() if table.relation_oid in rule.seen}
    before: Sequence[str] | None = None
    for description, called in _descriptions(opened, table):
        if description.relation.relation_oid != table.relation_oid:
            continue
        sent = [column.name for column in description.relation.columns]
        begin = sent if before is None else _common(before, sent)
        if opened.lineage.numbers(description) is not None:
            known = {name for name, column in zip(sent, called, strict=True) if column in found}
        elif known <= {*begin} or {*sent} <= {*explicit}:
            known = {*sent} & (known | {name.column for name in rules})
        else:
            lost, new = sorted(known - {*begin}), sorted({*sent} - {*begin} - {*explicit})
            raise ChangeLogError(
                f"{table.qualified}: the log does not say which column is {', '.join(map(repr, lost))} now, which has "
                "a rule, since the table was altered: it is left unchanged until a capture has read the catalog; or "
                f"give each of its columns a rule, such as --mask {table.qualified}.{(new or sent)[0]}=plain"
            )
        before = sent


def _common(one: Sequence[str], other: Sequence[str]) -> Sequence[str]:
    """Return the names with which both lists begin."""
    for index, (first, second) in enumerate(zip(one, other, strict=False)):
        if first != second:
            return one[:index]
    return one[: len(other)]


def _check_key(table: Table, found: Mapping[str, ColumnName], rules: Mapping[ColumnName, Rule]) -> None:
    """Raise ChangeLogError for a column of the key whose rule makes rows equal that are not."""
    keys = {column for each in table.identities for column in each.key_columns}
    if table.replica_identity != RelationReplicaIdentity.FULL:
        keys |= {*table.key_columns}
    for column, name in found.items():
        if column in keys and not rules[name].keeps_keys:
            raise ChangeLogError(
                f"{table.qualified}: {quote_identifier(column)} is in the key by which changes find their rows, so it "
                f"cannot be {rules[name].words}: mask it by sha256, which keeps different keys different, or give the "
                "table another key (ALTER TABLE ... REPLICA IDENTITY), and copy it again"
            )


def _with_seen(
    rules: Mapping[ColumnName, Rule], table: Table, found: Mapping[str, ColumnName]
) -> dict[ColumnName, Rule]:
    """Return the rules of a table's columns with their attribute numbers."""
    changed = dict[ColumnName, Rule]()
    for column, name in found.items():
        rule = changed.get(name, rules[name])
        numbers = {*rule.seen.get(table.relation_oid, ()), *filter(None, [table.numbers.get(column)])}
        changed[name] = replace(rule, seen={**rule.seen, table.relation_oid: tuple(sorted(numbers))})
    return changed


def _ruled_table(table: Table, rules: Mapping[str, Rule]) -> Table:
    """Return a table without excluded columns, whose masked columns are strings, and renamed ones have their names.

    Raises ChangeLogError for a name that another column of the table has.
    """
    names = {column: rule.name for column, rule in rules.items() if rule.name}
    others = Counter([*(set(table.columns.names) - names.keys()), *names.values()])
    for column, name in names.items():
        if others[name] > 1:
            raise ChangeLogError(
                f"{table.qualified}: {quote_identifier(column)} cannot be renamed to {quote_identifier(name)}, the "
                "name of another column: give it another name (--rename-column, rename_columns=)"
            )
    masks = {column: rule.mask for column, rule in rules.items() if rule.mask is not None}
    fields = [each.with_type(pa.string()) if each.name in masks else each for each in table.columns]
    masked = replace(
        table,
        columns=pa.schema(fields),
        defaults=dict(_masked_defaults(table, masks)),
        rules={names.get(column, column): rule.label for column, rule in rules.items()},
        hides_values=len(names) < len(rules),
    )
    left = without_columns(masked, {column for column, rule in rules.items() if rule.kind is RuleKind.EXCLUDED})
    return left.renamed(lambda column: names.get(column, column)) if names else left


def without_columns(table: Table, gone: Collection[str]) -> Table:
    """Return a table without some columns, none of which is in its key."""
    base, names = table.base, frozenset(gone)
    return replace(
        table,
        columns=pa.schema([each for each in table.columns if each.name not in names]),
        current=tuple(name for name in table.current if name not in names),
        shapes=tuple((first, shape - names) for first, shape in table.shapes),
        base=base and base._replace(columns=base.columns - names),
        defaults={name: given for name, given in table.defaults.items() if name not in names},
        numbers={name: number for name, number in table.numbers.items() if name not in names},
        copied={name: source for name, source in table.copied.items() if name not in names},
    )


def _masked_defaults(table: Table, masks: Mapping[str, Mask]) -> Iterator[tuple[str, ColumnDefault]]:
    """Yield the defaults that older rows have in columns, which are values like others."""
    for column, given in table.defaults.items():
        if column not in masks:
            yield column, given
        elif masks[column].is_known and (text := masks[column].text(_text_of(given))) is not None:
            yield column, ColumnDefault(RelationColumn(0, given.column.name, TYPE_NAMES["text"].oid, -1), {}, text)


def _text_of(given: ColumnDefault) -> str:
    reader, value = ColumnReader(given.column, given.types, pa.string()), given.text.encode("utf-8", "surrogateescape")
    try:
        return str(reader.load(value))
    except CannotHold:
        return reader.text(value)
