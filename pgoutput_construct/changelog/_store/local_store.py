"""A log in a directory: fsync and rename make a file durable, flock excludes other writers.

A log contains the rows of its tables, so by default only its owner can read it: files have mode 0600, directories that
are created for it 0700, whatever the umask is. To let others read it (``set_file_mode``), the mode of its files is
stored in the log itself, in ``.file-mode``: every process that writes into the log later (compact, prune, snapshot,
readers) follows it without an option of its own, as everything does in a data directory made by
``initdb --allow-group-access``.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow as pa

from pgoutput_construct.changelog._store.store import LogLock, LogStore
from pgoutput_construct.errors import ChangeLogError

__all__ = ["LocalStore"]

_MODE_NAME: Final = ".file-mode"
_MODE_BYTES: Final = 80
_OWN: Final = 0o600
_ALL: Final = 0o666
_AS_IT_IS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Temporary files are opened without following a link, which could lead out of the log, or waiting for a pipe."""


class LocalStore(LogStore):
    """A log in one directory."""

    def __init__(self, directory: str | Path, durable: bool = True, private: bool = True) -> None:
        """Take a directory, which need not exist yet.

        Args:
            directory: Its path.
            durable: Flush what is written to the disk (fsync); tests turn it off.
            private: Files get the mode that was set (``set_file_mode``), or 0600; if False, the umask decides, as for
                the files that Spark writes into the same directory.
        """
        self.directory = Path(directory).absolute()
        self.durable = durable
        self.private = private
        super().__init__(str(self.directory), str(self.directory))

    def prepare(self) -> None:
        """Create the directory and its parents, so that all of them survive a crash of the machine."""
        with self.explained("the directory of the change log cannot be created"):
            missing = [path for path in (self.directory, *self.directory.parents) if not path.exists()]
            for path in reversed(missing):
                self._make_directory(path)
                self._fsync_directory(path.parent)
            if not missing:
                self._make_directory(self.directory)  # raises if it is a file
                self._fsync_directory(self.directory.parent)  # whoever created it may have crashed before this

    def files(self, folder: str = "") -> dict[str, int]:
        """Return names and sizes (bytes) of the files that do not begin with a dot."""
        with self.explained("cannot be listed"):
            try:
                with os.scandir(self.directory / folder) as entries:
                    return {entry.name: size for entry in entries if (size := _size(entry)) is not None}
            except FileNotFoundError:
                return {}

    def folders(self, folder: str = "") -> set[str]:
        """Return the names of the folders that do not begin with a dot."""
        with self.explained("cannot be listed"):
            try:
                with os.scandir(self.directory / folder) as entries:
                    return {entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")}
            except FileNotFoundError:
                return set()

    def has(self, name: str) -> bool:
        """Return whether a file exists."""
        with self.explained("cannot be read", name):
            try:
                (self.directory / name).stat()
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def modified(self, name: str) -> float:
        """Return when a file was last written: seconds since 1970."""
        with self.explained("cannot be read", name):
            return (self.directory / name).stat().st_mtime

    def open(self, name: str) -> pa.NativeFile:
        """Open a file for random access."""
        with self.explained("cannot be read", name):
            path = self.directory / name
            if not stat.S_ISREG(path.stat().st_mode):
                raise ChangeLogError(f"{path}: cannot be read: it is not a regular file")
            return pa.OSFile(str(path))

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """Write a temporary file, fsync it, rename it, fsync the directory."""
        path = self.directory / name
        temporary = path.with_name(f".{path.name.lstrip('.')}.tmp")
        with self.explained("cannot be written", name):
            for folder in reversed(Path(name).parents[:-1]):
                self._make_directory(self.directory / folder)  # never the log's own: it may be an unmounted volume
            with self._replacing(path, temporary) as file:
                yield file

    @contextmanager
    def _replacing(self, path: Path, temporary: Path) -> Iterator[BinaryIO]:
        descriptor = _open_locked(temporary, self.creation_mode)
        with os.fdopen(descriptor, "wb") as file:
            try:
                self.set_mode(descriptor)
                yield file
                file.flush()
                if self.durable:
                    os.fsync(file.fileno())
                temporary.rename(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            self._fsync_directory(path.parent)

    def delete(self, name: str) -> None:
        """Remove a file, if it exists."""
        with self.explained("cannot be removed", name):
            (self.directory / name).unlink(missing_ok=True)

    def remove(self, folder: str) -> None:
        """Remove a folder, if it exists."""
        with self.explained("cannot be removed", folder), suppress(FileNotFoundError):
            shutil.rmtree(self.directory / folder)

    def lock(self, name: str, seconds: float | None = None) -> LogLock:
        """Lock ``.NAME.lock`` until it is released or the process ends; ``seconds`` are ignored."""
        with self.explained("the directory of the change log cannot be locked"):
            return _FileLock(self, self.directory / f".{name}.lock", name)

    def set_file_mode(self, mode: int) -> None:
        """See LogStore. Whoever may read the files by ``mode`` may also list the directories."""
        if mode & _OWN != _OWN or mode & ~_ALL or not self.private:
            raise ChangeLogError(f"{mode:#o} is not a mode for the files of a log: use 0600, 0640, 0660 or 0644")
        with self.explained("the mode of the files cannot be set"):
            self.write(_MODE_NAME, f"{mode:04o}\n".encode())
            for folder, _, names in os.walk(self.directory):
                known = stat.S_IMODE(Path(folder).stat().st_mode)
                # The log's own directory keeps what its creator allowed in addition: that opens none of the files.
                kept = known if Path(folder) == self.directory else known & stat.S_ISGID
                if kept | _of_directory(mode) != known:
                    Path(folder).chmod(kept | _of_directory(mode))
                for path in (Path(folder, name) for name in names):
                    with suppress(FileNotFoundError):  # compacted since
                        if stat.S_ISREG(found := path.lstat().st_mode) and stat.S_IMODE(found) != mode:
                            path.chmod(mode)

    def _file_mode(self) -> int | None:
        """Return the mode that was set for the log's files; None if none was."""
        if not self.has(_MODE_NAME):
            return None
        text = self.read(_MODE_NAME, most=_MODE_BYTES).decode("ascii", "replace")
        try:
            mode = int(text, 8)
        except ValueError:
            mode = 0
        if mode & _OWN != _OWN or mode & ~_ALL:
            remedy = "write a mode such as 0640 into it, or remove the file for 0600"
            raise ChangeLogError(f"{self.path_of(_MODE_NAME)}: {text.strip()!r:.40} is not a file mode: {remedy}")
        return mode

    @property
    def creation_mode(self) -> int:
        """The mode with which a file is created, before ``set_mode``."""
        return _OWN if self.private else _ALL

    def set_mode(self, descriptor: int) -> None:
        """Set the mode of the log's files on a file that is open for writing, if this process owns it."""
        status = os.fstat(descriptor)
        if self.private and status.st_uid == os.geteuid():
            chosen = self._file_mode()
            mode = _OWN if chosen is None else chosen
            try:
                if stat.S_IMODE(status.st_mode) != mode:
                    os.fchmod(descriptor, mode)
            except PermissionError:  # the mount decides, as for FAT or a mounted bucket
                if chosen is not None:
                    raise

    def _make_directory(self, path: Path) -> None:
        chosen = self._file_mode() if self.private else None
        mode = _of_directory(_OWN if chosen is None else chosen) if self.private else 0o777
        try:
            path.mkdir(mode)
        except FileExistsError:
            if not path.is_dir():
                raise
            return
        if chosen is not None:  # whatever the umask is
            path.chmod(mode | path.stat().st_mode & stat.S_ISGID)

    def sweep(self) -> None:
        """Remove unfinished files that no process has locked."""
        with self.explained("an unfinished file cannot be removed"):
            for temporary in self.directory.glob(".*.tmp"):
                with suppress(FileNotFoundError):  # a compaction has completed it since
                    _remove_unlocked(temporary)

    def _fsync_directory(self, directory: Path) -> None:
        if not self.durable:
            return
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class _FileLock(LogLock):
    """A locked file, identified by device and inode: its name may be given to another file later."""

    def __init__(self, store: LocalStore, path: Path, purpose: str) -> None:
        self._store, self._path, self._purpose = store, path, purpose
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, store.creation_mode)
        try:
            store.set_mode(self._descriptor)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.check()
        except BlockingIOError:
            self.release()
            raise ChangeLogError(
                f"{store}: another {purpose} writes into this directory; stop it, or choose another directory"
            ) from None
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """Raise ChangeLogError when the directory or the lock file has been exchanged."""
        locked = os.fstat(self._descriptor)
        try:
            there = self._path.stat()
        except OSError:
            there = None
        if there is None or (there.st_dev, there.st_ino) != (locked.st_dev, locked.st_ino):
            raise ChangeLogError(
                f"{self._store}: the directory was removed or exchanged while this {self._purpose} was running "
                f"({self._path.name} is not the file that it locked): was a volume unmounted? Restore the directory"
            )

    def release(self) -> None:
        """Close the file, which unlocks it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _of_directory(mode: int) -> int:
    """Return the mode of a directory whose files have ``mode``: each r gets an x."""
    return mode | (mode & 0o444) >> 2


def _size(entry: "os.DirEntry[str]") -> int | None:
    if entry.name.startswith("."):
        return None
    try:
        return entry.stat().st_size if entry.is_file() else None
    except FileNotFoundError:  # removed meanwhile
        return None


def _open_locked(temporary: Path, mode: int) -> int:
    """Open an empty temporary file, and lock it, so that ``sweep`` does not remove it; return its descriptor.

    Another attempt of the same task may be writing it: what that has written must not be truncated before it is
    renamed, and this attempt must not write into the file that it has renamed.
    """
    while True:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | _AS_IT_IS, mode)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), temporary.stat()):
                    os.ftruncate(descriptor, 0)
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _remove_unlocked(temporary: Path) -> None:
    descriptor = os.open(temporary, os.O_RDONLY | _AS_IT_IS)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temporary.unlink(missing_ok=True)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)
