"""The notes of a warehouse: which datasets it has, up to which seq of the log each is, and the shape of its table."""

import json
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from threading import Lock
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit, urlunsplit

from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.json_notes import from_json, parse_json, read_note
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.store import Address, LogStore
from pgoutput_construct.changelog.reader import LogIdentity
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark._log_view.replicated_tables import ChangePosition, Table, table_of_directory
from pgoutput_construct.spark._replicate.dataset_names import DEFAULT_NAMES, HISTORY_SUFFIX, SCHEMA, TABLE, DatasetNames
from pgoutput_construct.stream.identifiers import normal_name, qualified_name
from pgoutput_construct.wire import Lsn

STAGED: Final = "_staged"
"""The directory of staged changes: no table's, and no schema's, whose directories have no underscore first."""
_NOWHERE: ChangePosition = (-1, -1)
_FOLDER: Final = "_datasets"
_SHAPES: Final = "_shapes"
_PROGRESS: Final = "_warehouse.json"
_LONGEST: Final = 200  # bytes of a note's name: file systems take 255
_AT_ONCE: Final = 8
_DIGITS: Final = 32  # of SHA-256, in hexadecimal: 128 bits
_SCHEMES: Final = {"s3": "s3a"}  # as Hadoop calls it


_DECIMAL: Final = re.compile(r"decimal128\((\d+), (-?\d+)\)")
_WIDER: Final = {("int16", "int32"), ("int16", "int64"), ("int32", "int64"), ("float", "double")}
"""Types of Arrow, and wider ones, that formats alter a column to."""


def is_wider(kind: str, former: str) -> bool:
    """Return whether a type of Arrow is a wider one, which holds all values of the former one as they are."""
    now, was = _DECIMAL.fullmatch(kind), _DECIMAL.fullmatch(former)
    if now and was:
        return now[2] == was[2] and int(now[1]) > int(was[1])
    return (former, kind) in _WIDER


@dataclass(frozen=True)
class VersionShape:
    """How a table was described: what decides whether its rows can be brought up to date by changes."""

    columns: Mapping[str, str]
    """All columns that it ever had in the log, and their types."""
    current: tuple[str, ...]
    """The present ones."""
    key_columns: tuple[str, ...]
    """Those of its replica identity."""
    replica_identity: str
    """As relreplident in pg_class."""
    copy: int | None
    """The seq of the copy that its state begins with; None for none."""
    numbers: Mapping[str, int] = field(default_factory=dict)
    """The attribute numbers of columns (pg_attribute.attnum), as far as they are known; of a history's also those
    that the log no longer has.
    """
    rules: Mapping[str, str] = field(default_factory=dict)
    """What was made of columns: excluded, renamed to this name, or how their values are masked (``Rule.label``)."""
    added: tuple[str, ...] | None = None
    """The columns that the dataset has in addition to the table's, as replays call them; None for those of a history,
    and of a table that an earlier version wrote (``dataset_columns.STATE``).
    """
    copied: tuple[str, ...] = ()
    """Those of ``current`` that are copies of columns of changes (``Table.copied``)."""

    @classmethod
    def from_table(cls, table: Table) -> Self:
        """Return the shape of a table as the log has it."""
        columns = {field.name: str(field.type) for field in table.columns}
        copy = table.base.copy.seq if table.base else None
        identity = table.key_columns, table.replica_identity
        return cls(columns, table.current, *identity, copy, table.numbers, table.rules, copied=tuple(table.copied))

    def renamed_in(self, later: "VersionShape") -> dict[str, str]:
        """Return the later names of renamed columns, by their names here.

        A dropped one, whose name another one has later, is called ``name_dropped_number``, as in ``Table``.
        """
        names = {number: name for name, number in later.numbers.items()}
        found = {}
        for name, number in self.numbers.items():
            if number not in names and later.numbers.get(name, number) != number:
                names[number] = f"{name}_dropped_{number}"
            if names.get(number, name) != name:
                found[name] = names[number]
        return found

    def continuing(self, before: "VersionShape") -> Self:
        """Return the shape with the numbers of an earlier one's columns, under their present names."""
        renamed = before.renamed_in(self)
        earlier = {renamed.get(name, name): number for name, number in before.numbers.items()}
        return replace(self, numbers={**earlier, **self.numbers})

    def added_in(self, later: "VersionShape") -> tuple[str, ...]:
        """Return the columns that were added since; columns may have been dropped."""
        was, now = self._own_columns, later._own_columns
        return now[len(tuple(name for name in was if name in now)) :]

    @property
    def _own_columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.current if name not in self.copied)

    def widened_in(self, later: "VersionShape") -> tuple[str, ...]:
        """Return the columns whose type was made wider since: it holds all former values as they were."""
        return tuple(name for name, kind in self.columns.items() if is_wider(later.columns.get(name, kind), kind))

    def obstacle_to(self, later: "VersionShape") -> str:
        """Return why changes alone do not lead to a later shape; "" if they do.

        A renamed, or dropped and re-created, column has another name or order; one of another type other values.
        """
        renamed = ", ".join(f"{name!r} to {now!r}" for name, now in self.renamed_in(later).items())
        found = {
            "it was copied again": self.copy != later.copy,
            f"columns were renamed: {renamed}": bool(renamed),
            "columns are excluded, masked or renamed in another way": self.has_other_rules(later),
            "it has other metadata columns": (self.added, self.copied) != (later.added, later.copied),
        }
        return next((reason for reason, is_so in found.items() if is_so), "") or self._column_obstacle_to(later)

    def _column_obstacle_to(self, later: "VersionShape") -> str:
        was_own, own = self._own_columns, later._own_columns
        kept = tuple(name for name in was_own if name in own)
        if own[: len(kept)] != kept:
            return "its columns have another order"
        added, widened = self.added_in(later), self.widened_in(later)
        known = {name: kind for name, kind in later.columns.items() if name not in added}
        for name in sorted(known.keys() | self.columns.keys()):
            was, now = self.columns.get(name), known.get(name)
            if was != now and name not in widened:
                return f"the column {name!r} is {now or 'not known'}, and was {was or 'not known'}"
        return ""

    def has_other_rules(self, later: "VersionShape") -> bool:
        """Return whether columns are to be excluded, masked or renamed in another way than they were written."""
        renamed, now = self.renamed_in(later), later.rules
        was = {renamed.get(name, name): rule for name, rule in self.rules.items()}
        columns = {renamed.get(name, name) for name in self.columns}
        return any(was.get(name, "") != now[name] for name in now if name in columns) or any(
            now.get(name, "") != was[name] for name in was if name in later.columns
        )


@dataclass(frozen=True)
class Version:
    """The state of a table in a dataset. It is written with the data, in one commit."""

    table: str
    """Schema and name, as SQL writes them."""
    oid: int
    """The table's OID."""
    batch: int
    """The number of the batch that wrote it."""
    seq: int
    """Everything that ended in the log up to this seq is in it."""
    last: ChangePosition
    """The position of the last change that the log had of the table."""
    shape: VersionShape
    """How the table was described."""

    @classmethod
    def from_table(cls, table: Table, batch: int, seq: int) -> Self:
        """Return the version of a table as a log has it, up to ``seq``."""
        last = max((each.last for each in table.identities), default=_NOWHERE)
        return cls(table.qualified, table.relation_oid, batch, seq, last, VersionShape.from_table(table))

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values that a person can read."""
        commit_lsn, place = self.last
        return asdict(self) | {"last": {"commit_lsn": str(Lsn(commit_lsn)) if commit_lsn >= 0 else None, "seq": place}}


@dataclass(frozen=True)
class _LastNote:
    commit_lsn: Lsn | None
    seq: int


@dataclass(frozen=True, kw_only=True)
class _VersionNote:
    """A version as ``Version.to_json`` and ``Warehouse.commit_text`` write it."""

    table: str
    oid: int
    batch: int
    seq: int
    last: _LastNote
    shape: VersionShape | str

    def version(self, shape: VersionShape) -> Version:
        """Return the version; raise PgoutputError if the name of its table is not one of SQL."""
        lsn = self.last.commit_lsn
        last = (_NOWHERE[0] if lsn is None else int(lsn), self.last.seq)
        # Earlier versions wrote keywords, and names with a dollar sign, without quotes.
        return Version(normal_name(self.table), self.oid, self.batch, self.seq, last, shape)


@dataclass(frozen=True, kw_only=True)
class _DatasetNote(_VersionNote):
    shape: VersionShape
    directory: str
    is_history: bool
    details: Mapping[str, Any]


_NO_SHAPE: Final = VersionShape({}, (), (), "", None)


class Moving(NamedTuple):
    """A dataset that is being moved, since its table was renamed."""

    before: str
    """Its directory,"""
    after: str
    """and the one that it is to have."""
    table: str
    """The present name of its table."""


class Unnoted(NamedTuple):
    """The place of a dataset that has no note: it is being created, or removed."""

    directory: str
    """Its directory."""
    table: str
    """The name of its table."""
    oid: int
    """The table's OID."""
    is_history: bool
    """Whether it is that of the history."""
    is_removed: bool = False
    """Whether the dataset is being removed."""

    @classmethod
    def from_dataset(cls, dataset: "Dataset", is_removed: bool = False) -> Self:
        """Return the place of a dataset that is being created or removed."""
        version = dataset.version
        return cls(dataset.directory, version.table, version.oid, dataset.is_history, is_removed)

    def to_dataset(self) -> "Dataset":
        """Return the dataset as far as it is known, without columns."""
        version = Version(self.table, self.oid, 0, -1, _NOWHERE, _NO_SHAPE)
        return Dataset(self.directory, version, is_history=self.is_history)


@dataclass(frozen=True)
class Progress:
    """How far a warehouse has come; written before and after each batch."""

    format: str
    """The format of its tables."""
    batch: int = 0
    """The number of the last batch, 0 before the first."""
    seq: int = -1
    """The last seq of that batch."""
    done: bool = True
    """Whether the notes of all tables are up to date with their data; False during a batch, and after one that was
    interrupted, or failed in a table.
    """
    prefix: str = "_"
    """The prefix of added columns."""
    troubled: Mapping[str, str] = field(default_factory=dict)
    """Tables that were not brought up to date, each with the reason."""
    applied: int | None = None
    """The last seq of the last batch: every table without an own seq has everything that ended by then."""
    log: LogIdentity | None = None
    """The log of the tables; None in a note of an earlier version."""
    adopted: int = 0
    """Datasets that batches up to this one wrote are of an earlier log."""
    reader: str = ""
    """The name of the warehouse as a reader of its log."""
    lacking: tuple[int, ...] = ()
    """The OIDs of tables that the log did not have completely when they were applied last."""
    catalog: str | None = None
    """The catalog of the session that has its tables; None where they are in the warehouse."""
    own_seqs: Mapping[int, int] = field(default_factory=dict)
    """The seqs of tables in trouble, by OID: each has everything that ended by its own."""
    rules: tuple[Mapping[str, Any], ...] = ()
    """What is made of columns: ``ColumnRules.to_notes``."""
    namespace: str = SCHEMA
    """The template of the namespaces of its datasets."""
    table_name: str = TABLE
    """The template of their names."""
    schema_column: str = ""
    """The column that has the schema, where tables of several schemas share one."""
    layout: Mapping[str, Any] = field(default_factory=dict)
    """Which columns tables have in addition to their own: ``ColumnLayout.to_notes``."""
    moving: tuple[Moving, ...] = ()
    """Datasets that a batch was to move, in this order; none after it."""
    unnoted: tuple[Unnoted, ...] = ()
    """Places that may have files without a note: a batch was to create or to remove their datasets. After it, those
    where it failed, and those of tables that wait.
    """
    grace: float = 600.0
    """For how many seconds replaced Parquet files are retained for their readers."""
    identity: str = ""
    """What tells the warehouse from others of the same path on other machines; "" in one of an earlier version."""
    microseconds: bool = False
    """Whether all files have timestamps in microseconds, or those that have not were reported."""

    @classmethod
    def read(cls, store: LogStore) -> Self | None:
        """Read that of a warehouse, None if it has none; raises ChangeLogError if it is damaged."""
        remedy = "choose another warehouse, or remove the file: the tables are then written again from the log"
        known = read_note(store, _PROGRESS, cls, what="invalid metadata of a warehouse", remedy=remedy, exact=True)
        is_earlier = known is not None and known.applied is None and known.done  # of an earlier version
        return replace(known, applied=known.seq) if known is not None and is_earlier else known

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values that a person can read."""
        return asdict(self)

    @property
    def names(self) -> DatasetNames:
        """The names of its datasets."""
        return DatasetNames(self.namespace, self.table_name, self.schema_column)

    def to_seq(self, version: Version) -> int:
        """Return the seq up to which a dataset has everything that ended in the log."""
        applied = -1 if self.applied is None else self.applied
        return max(version.seq, self.own_seqs.get(version.oid, applied))

    def is_foreign(self, version: Version) -> bool:
        """Return whether a dataset is of an earlier log."""
        return version.batch <= self.adopted


@dataclass(frozen=True)
class Dataset:
    """One dataset, as its note has it."""

    directory: str
    """Its name in the warehouse, see ``directory_name``."""
    version: Version
    """What it holds: with Parquet the truth itself, with others the state after the last completed batch."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What its format stores in addition."""
    is_history: bool = False
    """Whether it has all rows that the table ever had, not the present ones."""


class NoteOwner(NamedTuple):
    """The dataset of a note that cannot be read, by its name."""

    table: str
    """The table; the name of the note where that does not contain it."""
    is_history: bool
    """Whether it is that of the history."""


class Warehouse:
    """The directory, or the URL in an object store, that holds the datasets of a log."""

    def __init__(self, address: Address | LogStore) -> None:
        """Name a warehouse, which need not exist yet; raises ChangeLogError for an invalid address."""
        self.store = open_store(address, private=False)  # as Spark writes its tables
        self.path = spark_path(self.store)
        self._written_shapes = set[str]()
        self._shapes_lock = Lock()

    @property
    def is_local(self) -> bool:
        """Whether it is a directory."""
        return isinstance(self.store, LocalStore)

    @property
    def ignores_case(self) -> bool:
        """Whether it is a directory of a file system for which names that differ in case alone are one."""
        return isinstance(self.store, LocalStore) and (self.store.directory / _PROGRESS.upper()).exists()

    def progress(self) -> Progress | None:
        """Return how far it has come, None where there is no warehouse; raises PgoutputError for a damaged note."""
        return Progress.read(self.store)

    def existing_progress(self) -> Progress:
        """Return how far it has come; raises PgoutputError where there is no warehouse, or its note is damaged."""
        if (progress := self.progress()) is None:
            raise PgoutputError(f"{self.store}: no warehouse here (no table was replicated into it)")
        return progress

    def write_progress(self, progress: Progress) -> None:
        """Write how far it has come, durably; the first one creates the warehouse."""
        self.store.prepare()
        self.store.write(_PROGRESS, json.dumps(progress.to_json()).encode())

    def datasets(self) -> dict[str, Dataset]:
        """Return the datasets by directory; raises PgoutputError if a note is damaged."""
        found, damaged = self.readable_datasets()
        for error in damaged.values():
            raise error
        return found

    def readable_datasets(self) -> tuple[dict[str, Dataset], dict[str, PgoutputError]]:
        """Return the datasets by directory, and the errors of damaged notes, by their names."""
        found, damaged = dict[str, Dataset](), dict[str, PgoutputError]()
        for name in sorted(name for name in self.store.files(_FOLDER) if name.endswith(".json")):
            note = f"{_FOLDER}/{name}"
            try:
                dataset = self._dataset(note)
            except PgoutputError as error:
                damaged[note] = error
                continue
            if dataset is not None:
                found[dataset.directory] = dataset
        return found, damaged

    def dataset(self, directory: str) -> Dataset | None:
        """Return one dataset, None where there is none; raises PgoutputError if its note is damaged."""
        return self._dataset(note_name(directory))

    def find(self, table: str, is_history: bool = False) -> Dataset:
        """Return the dataset of a table, or of its history, by its name as ``version.table`` has it.

        Raises PgoutputError where there is none; if its own note is damaged, or one that may be its, with that.
        """
        datasets, damaged = self.readable_datasets()
        known = {each.version.table: each for each in datasets.values() if each.is_history == is_history}
        if table in known:
            return known[table]
        for note, error in damaged.items():
            if self.note_owner(note) in (NoteOwner(table, is_history), NoteOwner(note, False)):
                raise error
        what = "history of the table" if is_history else "table"
        raise PgoutputError(f"{self.store}: no {what} {table}: it has {', '.join(sorted(known)) or 'none'}")

    def write_note(self, dataset: Dataset) -> None:
        """Write the note of a dataset: durable when this returns; readers see this one or the one before."""
        content = {"directory": dataset.directory, "is_history": dataset.is_history, **dataset.version.to_json()}
        self.store.write(
            note_name(dataset.directory), json.dumps(content | {"details": dict(dataset.details)}, indent=1).encode()
        )

    def write_notes(self, datasets: Iterable[Dataset]) -> list[Dataset | Exception]:
        """Write the notes of datasets, several at a time: each waits for a disk or a network.

        Returns:
            Each dataset, or the error of its note.
        """
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="note") as pool:
            return list(pool.map(self._noted, datasets))

    def _noted(self, dataset: Dataset) -> Dataset | Exception:
        try:
            self.write_note(dataset)
        except Exception as error:
            return error
        return dataset

    def commit_text(self, version: Version) -> str:
        """Return a version for the metadata of a format's commit: a few hundred bytes, however wide the table is.

        Formats retain the metadata of every commit, Iceberg in each metadata file. So the shape, which seldom changes,
        is a file of the warehouse, named after its contents; it is written before the commit that refers to it.
        """
        content = version.to_json()
        text = json.dumps(content["shape"])
        content["shape"] = digest = sha256(text.encode()).hexdigest()[:_DIGITS]
        with self._shapes_lock:  # a table and its history have one shape, and may be written at the same time
            if digest not in self._written_shapes:
                self.store.write(_shape_name(digest), text.encode())
                self._written_shapes.add(digest)
        return json.dumps(content)

    def version_of_commit(self, text: str) -> Version:
        """Return the version in the metadata of a commit; earlier versions wrote the shape itself into them.

        Raises PgoutputError if they cannot be parsed, or the file of its shape is missing, damaged or cannot be read.
        """
        remedy = "write the table from scratch: replicate --resync TABLE (resync=)"
        what = f"unreadable metadata of a commit: {text!r:.80}"
        try:
            note = from_json(_VersionNote, parse_json(text), exact=True)
            version = note.version(_NO_SHAPE)
        except ValueError as error:
            raise PgoutputError(f"{self.store}: {what}: {error}; {remedy}") from None
        if not isinstance(note.shape, str):
            return replace(version, shape=note.shape)
        name = _shape_name(note.shape)
        shape = read_note(self.store, name, VersionShape, what=what, remedy=remedy, exact=True)
        if shape is None:
            raise PgoutputError(f"{self.store.path_of(name)}: {what}: the file is missing; {remedy}")
        return replace(version, shape=shape)

    def note_owner(self, note: str) -> NoteOwner:
        """Return the owner of a note by its name alone, which templates of names make another one."""
        directory = note.removeprefix(f"{_FOLDER}/").removesuffix(".json")
        own, progress = directory.removesuffix(HISTORY_SUFFIX), self.progress()
        if progress is not None and progress.names != DEFAULT_NAMES:
            return NoteOwner(note, False)
        try:
            return NoteOwner(qualified_name(*table_of_directory(own)), own != directory)
        except (PgoutputError, ValueError):
            return NoteOwner(note, False)

    def remove_note(self, directory: str) -> None:
        """Remove the note of a dataset, which then does not exist for readers."""
        self.store.delete(note_name(directory))

    def _dataset(self, name: str) -> Dataset | None:
        what = "the note of a table, or of its history, is damaged"
        remedy = "remove the file, or give replicate --resync TABLE (resync=): the table is then written again"
        note = read_note(self.store, name, _DatasetNote, what=what, remedy=remedy, exact=True)
        if note is None:
            return None
        try:
            if note_name(note.directory) != name:
                raise ValueError(f"it is that of {note.directory!r}")
            return Dataset(note.directory, note.version(note.shape), note.details, note.is_history)
        except ValueError as error:
            raise PgoutputError(f"{self.store.path_of(name)}: {what}: {error}; {remedy}") from None


def spark_path(store: LogStore) -> str:
    """Return the path of a store for Spark: without credentials, which Hadoop's own settings must have."""
    if isinstance(store, LocalStore):
        return f"file://{store.directory}"
    parts = urlsplit(store.shown)
    return urlunsplit((_SCHEMES.get(parts.scheme, parts.scheme), parts.netloc, parts.path.rstrip("/"), "", ""))


def _shape_name(digest: str) -> str:
    return f"{_SHAPES}/{digest}.json"


def note_name(directory: str) -> str:
    """Return the name of the note of a dataset."""
    name = directory.encode("utf-8", "surrogateescape")
    return f"{_FOLDER}/{directory if len(name) <= _LONGEST else sha256(name).hexdigest()}.json"
