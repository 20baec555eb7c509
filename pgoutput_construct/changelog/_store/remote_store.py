"""A log in an object store or a distributed file system, through pyarrow's file systems or fsspec.

A file is durable when the store has acknowledged its upload. It is uploaded only when it is complete: a process that
dies before that leaves nothing (unfinished multipart uploads are for the bucket's lifecycle rules to expire).
"""

import io
import json
import os
import platform
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import BinaryIO
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import pyarrow as pa
from pyarrow import fs

from pgoutput_construct.changelog._store.json_notes import read_note
from pgoutput_construct.changelog._store.store import LogLock, LogStore
from pgoutput_construct.errors import ChangeLogError

__all__ = ["RemoteStore"]

_SHOWN = {"allow_bucket_creation", "endpoint_override", "region", "scheme"}
"""Parameters of a URL that hold no secrets."""
_CONTAINER_FIRST = {"abfs", "abfss"}
"""Schemes whose URLs have a container where others have a user."""
_WHOLE_OBJECTS = {"s3", "gcs", "abfs"}
"""Stores (``FileSystem.type_name``) where an object becomes visible when its upload is complete, not before."""


class RemoteStore(LogStore):
    """A log under one URL."""

    keeps_out = False
    reads_at_once = 16

    def __init__(self, uri: str) -> None:
        """Connect to the store of a URL; raises ChangeLogError, which shows no credentials."""
        super().__init__(uri, *_split(uri))
        with self.explained("cannot be opened"):
            self._system, base = _connect(uri)
        self._base = base.rstrip("/")

    def __reduce__(self) -> tuple[type["RemoteStore"], tuple[str]]:
        return RemoteStore, (self.address,)

    def prepare(self) -> None:
        """Create the directory, if the store has directories; a bucket must exist."""
        if self._system.type_name not in _WHOLE_OBJECTS:
            with self.explained("the directory of the change log cannot be created"):
                self._system.create_dir(self._base, recursive=True)

    def files(self, folder: str = "") -> dict[str, int]:
        """Return names and sizes (bytes) of the files that do not begin with a dot."""
        return {info.base_name: info.size for info in self._entries(folder) if info.type == fs.FileType.File}

    def folders(self, folder: str = "") -> set[str]:
        """Return the names of the folders that do not begin with a dot."""
        return {info.base_name for info in self._entries(folder) if info.type == fs.FileType.Directory}

    def _entries(self, folder: str) -> list[fs.FileInfo]:
        selector = fs.FileSelector(self._path(folder) if folder else self._base, allow_not_found=True)
        with self.explained("cannot be listed"):
            infos = self._system.get_file_info(selector)
        return [info for info in infos if not info.base_name.startswith(".")]

    def has(self, name: str) -> bool:
        """Return whether a file exists."""
        with self.explained("cannot be read", name):
            found: bool = self._system.get_file_info(self._path(name)).type == fs.FileType.File
            return found

    def modified(self, name: str) -> float:
        """Return when a file was last written; the present time if the store does not report it: nothing seems old."""
        with self.explained("cannot be read", name):
            info = self._system.get_file_info(self._path(name))
            if info.type == fs.FileType.NotFound:
                raise FileNotFoundError("no such file")
            return float(info.mtime_ns) / 1e9 if info.mtime_ns else time.time()

    def open(self, name: str) -> pa.NativeFile:
        """Open a file for random access."""
        with self.explained("cannot be read", name):
            return self._system.open_input_file(self._path(name))

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Collect the content in memory and upload it once."""
        content = io.BytesIO()
        yield content
        with self.explained("cannot be written", name):
            if self._system.type_name in _WHOLE_OBJECTS:
                self._upload(self._path(name), content)
            else:
                self._replace(name, content)

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""
        with self.explained("cannot be removed", name):
            try:
                self._system.delete_file(self._path(name))
            except FileNotFoundError:
                return

    def remove(self, folder: str) -> None:
        """Remove a folder, if it exists."""
        with self.explained("cannot be removed", folder), suppress(FileNotFoundError):
            self._system.delete_dir(self._path(folder))

    def lock(self, name: str, seconds: float | None = None) -> LogLock:
        """Claim the log for a purpose, by a note in the store that names the holder."""
        return _ClaimNote(self, f".{name}.json", name, seconds)

    def sweep(self) -> None:
        """Do nothing: there is one temporary name for each file, which the next upload of the file replaces."""

    def _path(self, name: str) -> str:
        return f"{self._base}/{name}"

    def _upload(self, path: str, content: io.BytesIO) -> None:
        with self._system.open_output_stream(path) as target:
            target.write(content.getbuffer())
        size = self._system.get_file_info(path).size
        if size != content.getbuffer().nbytes:
            raise OSError(f"the store has {size} of {content.getbuffer().nbytes} bytes")

    def _replace(self, name: str, content: io.BytesIO) -> None:
        """Upload under a temporary name, then rename: in this store a file is visible while it is written."""
        folder, _, last = name.rpartition("/")
        if folder:
            self._system.create_dir(self._path(folder), recursive=True)
        temporary = self._path(f"{folder}/.{last}.tmp" if folder else f".{last}.tmp")
        self._upload(temporary, content)
        self._system.move(temporary, self._path(name))


@dataclass(frozen=True)
class _Owner:
    owner: str
    time: float
    """Seconds since 1970, by the clock of its machine."""


class _ClaimNote(LogLock):
    """A note in the store that names the writer: it excludes nobody, but ``check`` notices a takeover."""

    def __init__(self, store: RemoteStore, name: str, purpose: str, seconds: float | None) -> None:
        self._store, self._name, self._purpose, self._seconds = store, name, purpose, seconds
        self._owner = f"{platform.node()}, process {os.getpid()}, {uuid.uuid4()}"
        self._renewed = 0.0
        other = self._read()
        if seconds is not None and other is not None and time.time() - other.time < seconds:
            raise ChangeLogError(
                f"{store}: another {purpose} is running here ({other.owner}); wait until it ends, or {seconds:.0f} "
                "seconds if it was killed"
            )
        self._write()
        self.check()

    def check(self) -> None:
        """Raise ChangeLogError when another writer has claimed the log since."""
        note = self._read()
        if note is None or note.owner != self._owner:
            other = "its note was removed" if note is None else f"{note.owner} has claimed it"
            raise ChangeLogError(f"{self._store}: this {self._purpose} has lost the log: {other}")
        if self._seconds is not None and time.monotonic() - self._renewed > self._seconds / 4:
            self._write()

    def release(self) -> None:
        """Remove the note, if it still names this writer."""
        note = self._read()
        if note is not None and note.owner == self._owner:
            self._store.delete(self._name)

    def _read(self) -> "_Owner | None":
        return read_note(self._store, self._name, _Owner, remedy="remove it")

    def _write(self) -> None:
        self._store.write(self._name, json.dumps(asdict(_Owner(self._owner, time.time()))).encode())
        self._renewed = time.monotonic()


def _connect(uri: str) -> tuple[fs.FileSystem, str]:
    try:
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
    except pa.ArrowInvalid as error:
        if "Unrecognized filesystem type" not in str(error):
            raise
        return _connect_fsspec(uri)
    return found


def _connect_fsspec(uri: str) -> tuple[fs.FileSystem, str]:
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(uri)
    except (ImportError, ValueError) as error:
        scheme = uri.partition(":")[0]
        raise ChangeLogError(
            f"{scheme}://: neither pyarrow nor fsspec can open it: {error}; install fsspec and the package that it "
            f"needs for {scheme}"
        ) from None
    return fs.PyFileSystem(fs.FSSpecHandler(system)), path


def _split(uri: str) -> tuple[str, tuple[str, ...]]:
    """Return a URL without its secrets, and the secrets; raise ChangeLogError where the two cannot be separated."""
    try:
        parts = urlsplit(uri)
        if parts.fragment or (parts.port is not None and "@" in parts.path):
            raise ValueError("a password that contains # or /")
    except ValueError:
        scheme = uri.partition(":")[0]
        raise ChangeLogError(
            f"{scheme}://...: not a valid URL; percent-encode the credentials, or better, set them in the environment"
        ) from None
    user, _, host = parts.netloc.rpartition("@")
    if user and parts.scheme in _CONTAINER_FIRST:  # abfss://CONTAINER[:PASSWORD]@ACCOUNT.dfs.core.windows.net
        container, _, user = user.partition(":")
        host = f"{container}@{host}"
    query = parse_qsl(parts.query)
    shown = urlencode([(key, value) for key, value in query if key in _SHOWN], safe=":/")
    hidden = [value for key, value in query if key not in _SHOWN]
    secrets = {user, *map(unquote, (user, *user.split(":", 1))), *user.split(":", 1), *hidden}
    return urlunsplit((parts.scheme, host, parts.path, shown, "")), tuple(sorted(filter(None, secrets), key=len))[::-1]
