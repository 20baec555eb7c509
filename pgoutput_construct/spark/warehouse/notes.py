"""Where a warehouse lies, and the notes in it: which datasets it has, and how far it has come."""

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit, urlunsplit

from pgoutput_construct.changelog._store.address import open_store
from pgoutput_construct.changelog._store.local_store import LocalStore
from pgoutput_construct.changelog._store.store import Address, LogStore, MissingFileError
from pgoutput_construct.changelog.reader import LogIdentity
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.spark.replicated_tables import table_of_directory
from pgoutput_construct.spark.warehouse.version import Version
from pgoutput_construct.stream.identifiers import qualified_name

__all__ = [
    "HISTORY_SUFFIX",
    "STAGED",
    "DamagedNote",
    "Dataset",
    "Progress",
    "Warehouse",
    "damaged_of",
    "note_name",
    "spark_path",
]

HISTORY_SUFFIX: Final = ".history"
"""How the directory of a history ends, after that of its table: no table's own has two dots."""
STAGED: Final = "staged"
"""The directory of what a batch needs only while it is applied: no table's, which has a dot."""

_FOLDER: Final = "_datasets"
_PROGRESS: Final = "_warehouse.json"
_DAMAGED: Final = {
    False: (
        "no note of a warehouse",
        "choose another warehouse, or remove the file: the tables are then written again from the log",
    ),
    True: (
        "the note of a table, or of its history, is damaged",
        "remove the file, or give replicate --resync TABLE (resync=): the table is then written again from the log",
    ),
}
"""What is wrong with a note, and what to do: by whether it is a dataset's."""
_LONGEST: Final = 200  # bytes of a note's name: file systems take 255
_AT_ONCE: Final = 8
_SCHEMES: Final = {"s3": "s3a"}  # as Hadoop calls it


@dataclass(frozen=True)
class Progress:
    """How far a warehouse has come; written before a batch, and after it."""

    format: str
    """The format of its tables."""
    batch: int = 0
    """The number of the last batch, 0 before the first."""
    seq: int = -1
    """The seq of the log up to which that goes."""
    done: bool = True
    """Whether the notes of all tables say what these are; False while a batch is under way, and after one that was
    interrupted, or failed in a table."""
    prefix: str = "_"
    """How the names of the columns begin that replicate adds."""
    troubled: Mapping[str, str] = field(default_factory=dict)
    """Tables that are not where it says, but where they were before, each with the reason."""
    applied: int | None = None
    """The seq of the last batch: every table that has no own seq has all that ended by then."""
    log: LogIdentity | None = None
    """The log that the tables are made from; None in a note of an earlier version."""
    adopted: int = 0
    """Datasets that a batch up to this one wrote are of an earlier log."""
    reader: str = ""
    """The name under which the warehouse is registered as a reader of its log."""
    lacking: tuple[int, ...] = ()
    """The OIDs of the tables of which the log did not have every row when they were applied last."""
    own_seqs: Mapping[int, int] = field(default_factory=dict)
    """By OID the tables in trouble, and up to which seq they have all that ended."""

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` returns; raise KeyError, TypeError or ValueError for anything else."""
        log, lacking = content.get("log"), tuple(content.get("lacking", ()))
        own_seqs = {int(oid): int(seq) for oid, seq in content.get("own_seqs", {}).items()}
        known = cls(**{**content, "log": log and LogIdentity.from_json(log), "lacking": lacking, "own_seqs": own_seqs})
        is_earlier = known.applied is None and known.done  # of an earlier version
        return replace(known, applied=known.seq) if is_earlier else known

    def to_json(self) -> dict[str, Any]:
        """Return it as values of JSON that a person can read."""
        return asdict(self)

    def to_seq(self, version: Version) -> int:
        """Return the seq up to which a dataset has all that ended in the log."""
        applied = -1 if self.applied is None else self.applied
        return max(version.seq, self.own_seqs.get(version.oid, applied))

    def is_foreign(self, version: Version) -> bool:
        """Return whether a dataset is of an earlier log."""
        return version.batch <= self.adopted


@dataclass(frozen=True)
class Dataset:
    """A note: one dataset, and what is known of it."""

    directory: str
    """Its name in the warehouse, as ``directory_name`` makes it."""
    version: Version
    """What it holds: with Parquet the truth itself, with others what was so after the last batch that was done."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What its format keeps in addition to that."""
    is_history: bool = False
    """Whether it has all rows that the table ever had, and not those that it has now."""


class Warehouse:
    """The directory, or the address in an object store, that holds the datasets of a log."""

    def __init__(self, address: Address | LogStore) -> None:
        """Name a warehouse, which need not be there yet; raises ChangeLogError for an address that is none."""
        self.store = open_store(address, private=False)  # as Spark writes its tables
        self.path = spark_path(self.store)

    def progress(self) -> Progress | None:
        """Return how far it has come, None where there is no warehouse; raises PgoutputError for a damaged note."""
        told = self._read(_PROGRESS)
        return None if told is None else self._made(_PROGRESS, lambda: Progress.from_json(told))

    def begin(self, progress: Progress) -> None:
        """Note how far it has come, durably; the first one makes the warehouse."""
        self.store.prepare()
        self.store.write(_PROGRESS, json.dumps(progress.to_json()).encode())

    def datasets(self) -> dict[str, Dataset]:
        """Return the datasets by their directories; raises PgoutputError where one of the notes is damaged."""
        found, damaged = self.readable_datasets()
        for error in damaged.values():
            raise error
        return found

    def readable_datasets(self) -> tuple[dict[str, Dataset], dict[str, PgoutputError]]:
        """Return the datasets by their directories, and what is wrong with notes that are damaged, by their names."""
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
        """Return one dataset, None where there is no such; raises PgoutputError where its note is damaged."""
        return self._dataset(note_name(directory))

    def find(self, table: str, is_history: bool = False) -> Dataset:
        """Return the dataset of a table, or of its history, by its name as ``version.table`` has it.

        Raises PgoutputError where it has none: where its own note is damaged, or one that may be its, with that.
        """
        datasets, damaged = self.readable_datasets()
        known = {each.version.table: each for each in datasets.values() if each.is_history == is_history}
        if table in known:
            return known[table]
        for note, error in damaged.items():
            if damaged_of(note) in (DamagedNote(table, is_history), DamagedNote(note, False)):
                raise error
        what = "history of the table" if is_history else "table"
        raise PgoutputError(f"{self.store}: no {what} {table}: it has {', '.join(sorted(known)) or 'none'}")

    def note(self, dataset: Dataset) -> None:
        """Write the note of a dataset: durable when this returns, and readers see this one or the one before."""
        told = {"directory": dataset.directory, "is_history": dataset.is_history, **dataset.version.to_json()}
        self.store.write(
            note_name(dataset.directory), json.dumps(told | {"details": dict(dataset.details)}, indent=1).encode()
        )

    def note_all(self, datasets: Iterable[Dataset]) -> None:
        """Write the notes of datasets, some at a time: each waits for a disk, or a network."""
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="note") as pool:
            for _ in pool.map(self.note, datasets):
                pass

    def forget(self, directory: str) -> None:
        """Remove the note of a dataset: for readers it is no more."""
        self.store.delete(note_name(directory))

    def _dataset(self, name: str) -> Dataset | None:
        told = self._read(name)
        return None if told is None else self._made(name, lambda: _read_dataset(told, name))

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            content = self.store.read(name)
        except MissingFileError:
            return None
        return self._made(name, lambda: dict(json.loads(content)))

    def _made(self, name: str, make: Any) -> Any:
        try:
            return make()
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what, remedy = _DAMAGED[name.startswith(f"{_FOLDER}/")]
            reason = f"{type(error).__name__}: {error}"
            raise PgoutputError(f"{self.store.path_of(name)}: {what}: {reason}; {remedy}") from None


def spark_path(store: LogStore) -> str:
    """Return the path of a store as Spark takes it: without credentials, which Hadoop's own settings must have."""
    if isinstance(store, LocalStore):
        return f"file://{store.directory}"
    parts = urlsplit(store.shown)
    return urlunsplit((_SCHEMES.get(parts.scheme, parts.scheme), parts.netloc, parts.path.rstrip("/"), "", ""))


class DamagedNote(NamedTuple):
    """Whose a note is that cannot be read, as its name says it."""

    table: str
    """The table; the name of the note where that does not say it."""
    is_history: bool
    """Whether it is that of the history."""


def damaged_of(note: str) -> DamagedNote:
    """Return whose a note is by its name alone."""
    directory = note.removeprefix(f"{_FOLDER}/").removesuffix(".json")
    own = directory.removesuffix(HISTORY_SUFFIX)
    try:
        return DamagedNote(qualified_name(*table_of_directory(own)), own != directory)
    except (PgoutputError, ValueError):
        return DamagedNote(note, False)


def note_name(directory: str) -> str:
    """Return the name of the note of a dataset."""
    name = directory.encode("utf-8", "surrogateescape")
    return f"{_FOLDER}/{directory if len(name) <= _LONGEST else sha256(name).hexdigest()}.json"


def _read_dataset(told: Mapping[str, Any], name: str) -> Dataset:
    """Return the dataset of a note; raise ValueError for a note that stands under the name of another one."""
    version = {key: value for key, value in told.items() if key not in ("directory", "details", "is_history")}
    found = Dataset(told["directory"], Version.from_json(version), dict(told["details"]), bool(told["is_history"]))
    if note_name(found.directory) != name:
        raise ValueError(f"it is that of {found.directory!r}")
    return found
