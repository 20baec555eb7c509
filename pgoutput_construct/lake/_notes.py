"""The notes of a warehouse: how far it has come, and which datasets it has."""

import json
from collections.abc import Mapping
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
from pgoutput_construct.lake._directories import HISTORY_SUFFIX, SCHEMA, TABLE, table_of_directory
from pgoutput_construct.lake._versions import NOWHERE, Version, VersionShape
from pgoutput_construct.stream.identifiers import normal_name, qualified_name
from pgoutput_construct.wire import Lsn

__all__ = [
    "Dataset",
    "Moving",
    "NoteOwner",
    "Progress",
    "Unnoted",
    "Warehouse",
    "note_name",
    "spark_path",
]

_FOLDER: Final = "_datasets"
_SHAPES: Final = "_shapes"
_PROGRESS: Final = "_warehouse.json"
_LONGEST: Final = 200  # bytes of a note's name: file systems take 255
_DIGITS: Final = 32  # of SHA-256, in hexadecimal: 128 bits
_SCHEMES: Final = {"s3": "s3a"}  # as Hadoop calls it


@dataclass(frozen=True)
class _LastNote:
    commit_lsn: Lsn | None
    seq: int


@dataclass(frozen=True, kw_only=True)
class _VersionNote:
    """A version as ``Version.to_json`` writes it, without its shape."""

    table: str
    oid: int
    batch: int
    seq: int
    last: _LastNote

    def version(self, shape: VersionShape) -> Version:
        """Return the version; raise PgoutputError if the name of its table is not one of SQL."""
        lsn = self.last.commit_lsn
        last = (NOWHERE[0] if lsn is None else int(lsn), self.last.seq)
        return Version(normal_name(self.table), self.oid, self.batch, self.seq, last, shape)


@dataclass(frozen=True, kw_only=True)
class _CommitNote(_VersionNote):
    """That of ``Warehouse.commit_text``, which has the name of its shape."""

    shape: str


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
    """The location of a dataset that has no note: it is being created, or removed."""

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
        """Return the location of a dataset that is being created or removed."""
        version = dataset.version
        return cls(dataset.directory, version.table, version.oid, dataset.is_history, is_removed)

    def to_dataset(self) -> "Dataset":
        """Return the dataset as far as it is known, without columns."""
        version = Version(self.table, self.oid, 0, -1, NOWHERE, _NO_SHAPE)
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
    applied: int = -1
    """The last seq of the last batch: every table without an own seq has everything that ended by then."""
    log: LogIdentity | None = None
    """The log of the tables; None before the first batch."""
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
    """Locations that may have files without a note: a batch was to create or to remove their datasets. After it, those
    where it failed, and those of tables that wait.
    """
    grace: float = 600.0
    """For how many seconds replaced Parquet files are retained for their readers."""
    identity: str = ""
    """What tells the warehouse from others of the same path on other machines."""

    @classmethod
    def read(cls, store: LogStore, exact: bool = True) -> Self | None:
        """Read that of a warehouse, None if it has none; raises ChangeLogError if it is damaged."""
        remedy = "choose another warehouse, or remove the file: the tables are then written again from the log"
        return read_note(store, _PROGRESS, cls, what="invalid metadata of a warehouse", remedy=remedy, exact=exact)

    @property
    def has_own_names(self) -> bool:
        """Whether its datasets have other names than their tables."""
        return (self.namespace, self.table_name, self.schema_column) != (SCHEMA, TABLE, "")

    def to_seq(self, version: Version) -> int:
        """Return the seq up to which a dataset has everything that ended in the log."""
        return max(version.seq, self.own_seqs.get(version.oid, self.applied))

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

    def __init__(self, address: Address | LogStore, exact: bool = True) -> None:
        """Name a warehouse, which need not exist yet; raises ChangeLogError for an invalid address.

        With ``exact``, notes with fields that are not known here are refused: whoever writes them would lose these.
        """
        self._exact = exact
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
        return Progress.read(self.store, self._exact)

    def existing_progress(self) -> Progress:
        """Return how far it has come; raises PgoutputError where there is no warehouse, or its note is damaged."""
        if (progress := self.progress()) is None:
            raise PgoutputError(f"{self.store}: no warehouse here (no table was replicated into it)")
        return progress

    def write_progress(self, progress: Progress) -> None:
        """Write how far it has come, durably; the first one creates the warehouse."""
        self.store.prepare()
        self.store.write(_PROGRESS, json.dumps(asdict(progress)).encode())

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
        """Return the version in the metadata of a commit.

        Raises PgoutputError if they cannot be parsed, or the file of its shape is missing, damaged or cannot be read.
        """
        remedy = "write the table from scratch: replicate --resync TABLE (resync=)"
        what = f"unreadable metadata of a commit: {text!r:.80}"
        try:
            note = from_json(_CommitNote, parse_json(text), exact=True)
            version = note.version(_NO_SHAPE)
        except ValueError as error:
            raise PgoutputError(f"{self.store}: {what}: {error}; {remedy}") from None
        name = _shape_name(note.shape)
        shape = read_note(self.store, name, VersionShape, what=what, remedy=remedy, exact=True)
        if shape is None:
            raise PgoutputError(f"{self.store.path_of(name)}: {what}: the file is missing; {remedy}")
        return replace(version, shape=shape)

    def note_owner(self, note: str) -> NoteOwner:
        """Return the owner of a note by its name alone, which templates of names make another one."""
        directory = note.removeprefix(f"{_FOLDER}/").removesuffix(".json")
        own, progress = directory.removesuffix(HISTORY_SUFFIX), self.progress()
        if progress is not None and progress.has_own_names:
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
        note = read_note(self.store, name, _DatasetNote, what=what, remedy=remedy, exact=self._exact)
        if note is None:
            return None
        try:
            if note_name(note.directory) != name:
                raise ValueError(f"the note belongs to {note.directory!r}")
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
