"""A link between one subscription and its server: a capture of the publications, and a publisher of its log."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Final

import psycopg
from psycopg import conninfo, sql

from pgoutput_construct.changelog._facts.catalog_readings import publication_readings
from pgoutput_construct.changelog._facts.completeness import present_copies
from pgoutput_construct.changelog.reader import ChangeLog
from pgoutput_construct.errors import PgoutputError
from pgoutput_construct.postgres.connection import SESSION_SETTINGS
from pgoutput_construct.postgres.publications import read_published
from pgoutput_construct.wire.types import Lsn
from tools.subscription_tests.statements import is_on

__all__ = ["Child", "Link", "LinkError"]

_POLL_SECONDS: Final = 0.1
_QUIET_SECONDS: Final = 3.0
"""After so long a wait the server is given a message to send."""
_RESTART_SECONDS: Final = 0.5
_STOP_SECONDS: Final = 20.0
_SCRATCH: Final = "pgoutput_test"
_CAPTURED: Final = {"binary": "--binary", "two_phase": "--two-phase"}
"""Options of a subscription that its capture has, too; what differs otherwise a publisher makes of any log."""


class LinkError(Exception):
    """Something did not happen in time; the text says what."""


class Child:
    """A command that is run again whenever it ends, until it is stopped."""

    def __init__(self, command: Callable[[], tuple[Sequence[str], Mapping[str, str]]], log: Path) -> None:
        """Prepare; ``command`` returns the command line and its environment at each start."""
        self._command, self._log = command, log
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = Event()
        self._watching: Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether it is to run."""
        return self._watching is not None

    def start(self) -> None:
        """Start it, unless it runs."""
        if self._watching is None:
            self._stopping.clear()
            self._watching = Thread(target=self._watch, daemon=True)
            self._watching.start()

    def kill(self) -> None:
        """Kill it with signal 9; it is run again."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def stop(self) -> None:
        """End it as Ctrl-C does, by signal 9 where that takes too long."""
        self._stopping.set()
        if self._watching is None:
            return
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._process.send_signal(signal.SIGINT)
        self._watching.join(_STOP_SECONDS)
        if self._watching.is_alive():
            self.kill()
            self._watching.join()
        self._watching = None

    def _watch(self) -> None:
        while not self._stopping.is_set():
            command, environment = self._command()
            with self._log.open("ab") as output:
                output.write(f"--- {time.strftime('%H:%M:%S')} {' '.join(command)}\n".encode())
                output.flush()
                with self._lock:
                    if self._stopping.is_set():
                        return
                    self._process = subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
                    )
                code = self._process.wait()
                output.write(f"--- {time.strftime('%H:%M:%S')} exit status {code}\n".encode())
            self._stopping.wait(_RESTART_SECONDS)


class Link:
    """A capture from the server of a subscription, and what serves its log to the subscription."""

    def __init__(
        self,
        name: str,
        server: str,
        publications: Sequence[str],
        options: Mapping[str, str],
        directory: Path,
        user: str,
        timeout: float,
    ) -> None:
        """Prepare for a subscription.

        Args:
            name: The subscription's.
            server: The connection string that it was given.
            publications: The names of its publications.
            options: Those of CREATE SUBSCRIPTION, by lower-case names.
            directory: Where the log, the slots' positions and the output of both are.
            user: The role that connects where the connection string names none.
            timeout: Seconds for which anything is waited for.
        """
        self.name, self.server, self.options = name, server, dict(options)
        self.publications = list(publications)
        self.log = directory / "log"
        self._directory, self._user, self._timeout = directory, user, timeout
        self._slots = directory / "slots.json"
        self._copies = is_on(options.get("copy_data", "true"))
        directory.mkdir(parents=True)
        self.port = _free_port()
        self.capture = Child(self._capture_command, directory / "capture.out")
        self.publisher = Child(self._serve_command, directory / "serve.out")
        self._opened: ChangeLog | None = None
        self._captured = list(publications)
        self._began = 0.0

    @property
    def slot(self) -> str:
        """The slot, at the server and at the publisher between; "" where the subscription has none."""
        name = self.options.get("slot_name", "").strip("'\"")
        return "" if name.lower() == "none" else name or self.name

    @property
    def application_name(self) -> str:
        """What the server calls the connection of the capture: what it would call that of the subscription."""
        return str(self._parts().get("application_name") or self.name)

    @property
    def address(self) -> str:
        """The connection string of the publisher between."""
        parts = self._parts()
        passed = {key: parts[key] for key in ("user", "password", "dbname", "application_name") if key in parts}
        return conninfo.make_conninfo("", host="127.0.0.1", port=self.port, **passed)

    def is_of(self, server: str, name: str) -> bool:
        """Return whether a server calls the connection of this one ``name``."""
        ours, given = self._parts(), conninfo.conninfo_to_dict(server)
        return name == self.application_name and all(ours.get(key) == given.get(key) for key in ("host", "port"))

    def begin(self) -> list[str]:
        """Start both; return what is missing after a while."""
        notes = []
        self._find_publications()
        self.capture.start()
        try:
            self._wait(self._is_logged, "the log has no segment, or not all copies")
        except LinkError as error:
            notes.append(str(error))
        self.publisher.start()
        try:
            self._wait(self._listens, "the publisher does not listen")
        except LinkError as error:
            notes.append(str(error))
        return notes

    def alter(
        self,
        *,
        server: str | None = None,
        publications: Sequence[str] | None = None,
        options: Mapping[str, str] | None = None,
        copies: bool | None = None,
        name: str | None = None,
    ) -> None:
        """Change the options of the subscription; the capture is restarted, like the worker of a subscription."""
        was_running = self.capture.is_running
        self.capture.stop()
        if server is not None:
            has_password = "password" in self._parts()
            self.server = server
            if has_password != ("password" in self._parts()):
                self.publisher.stop()
                self.publisher.start()
                self._wait(self._listens, "the publisher does not listen")
        if name is not None:
            self.options.setdefault("slot_name", self.name)
            self.name = name
        if publications is not None:
            self.publications = list(publications)
            self._find_publications()
        if copies is not None:
            self._copies = copies
        if options is not None:
            self._alter_slot(options)
            self.options |= options
        if was_running and self.slot:
            self.capture.start()

    def wait_current(self) -> None:
        """Wait until the log says which tables are published now, and has the copies."""
        self._wait(self._is_current, "the log does not have what is published now")

    def wait_served(self) -> None:
        """Wait until the subscriber has confirmed all that the log has, copies too."""
        self._wait(lambda: not self._copies or self._is_copied(), "tables were not copied into the log")
        if (end := self._end()) is not None:
            problem = f"{end[0]}, copies up to seq {end[1]} are not confirmed"
            self._wait(lambda: self._is_confirmed(*end) or self._write_if_quiet(), problem)

    def is_served(self) -> bool:
        """Return whether the subscriber has confirmed all that the log has, copies too."""
        end = self._end()
        return end is None or self._is_confirmed(*end)

    def end(self, drop_slot: bool) -> None:
        """Stop both; ``drop_slot``: have the server forget the slot, as DROP SUBSCRIPTION does."""
        self.capture.stop()
        self.publisher.stop()
        if drop_slot and self.slot:
            query = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
            with suppress(psycopg.Error), self._connect() as connection:
                connection.execute(query, (self.slot,))

    def _parts(self) -> dict[str, Any]:
        return {"user": self._user, "dbname": "postgres", **conninfo.conninfo_to_dict(self.server)}

    def _connect(self, **options: Any) -> "psycopg.Connection[Any]":
        settings = " ".join(f"-c {name}={value}" for name, value in SESSION_SETTINGS.items() if name == "search_path")
        given = {**self._parts(), "user": self._user, "application_name": _SCRATCH, "options": settings, **options}
        given.pop("password", None)
        return psycopg.connect(conninfo.make_conninfo("", **given), autocommit=True, connect_timeout=10)

    def _find_publications(self) -> None:
        """Note which publications exist: a capture refuses the others, a subscription warns of them."""
        query = "SELECT pubname FROM pg_publication WHERE pubname = ANY(%s) ORDER BY 1"
        with suppress(psycopg.Error), self._connect() as connection:
            found = [name for (name,) in connection.execute(query, (self.publications,))]
            self._captured = found or self._captured

    def _alter_slot(self, options: Mapping[str, str]) -> None:
        """Have the server's slot follow the subscription's, which PostgreSQL alters by a replication command.

        A slot sends prepared transactions from when its client asks for them, so two_phase is switched off alone
        (AlterSubscription() in ``subscriptioncmds.c``).
        """
        given = {name: is_on(options[name]) for name in ("two_phase", "failover") if name in options}
        if given.get("two_phase"):
            del given["two_phase"]
        if not given or not self.slot:
            return
        words = sql.SQL(", ").join(sql.SQL(f"{name} {str(value).lower()}") for name, value in given.items())
        command = sql.SQL("ALTER_REPLICATION_SLOT {} ({})").format(sql.Identifier(self.slot), words)
        with suppress(psycopg.Error), self._connect(replication="database") as connection:
            connection.execute(command)

    def _capture_command(self) -> tuple[list[str], dict[str, str]]:
        parts = {**conninfo.conninfo_to_dict(self.server), "application_name": self.application_name}
        password = str(parts.pop("password", ""))
        dsn = conninfo.make_conninfo("", **parts)
        command = [sys.executable, "-m", "pgoutput_construct.cli", "capture", dsn, str(self.log), "--slot", self.slot]
        for publication in self._captured:
            command += ["--publication", publication]
        command += ["--messages", "--workers", "1"]
        command.append("--create-slot" if is_on(self.options.get("create_slot", "true")) else "--new-log")
        if self._copies:
            command.append("--snapshot")
        command += [switch for option, switch in _CAPTURED.items() if is_on(self.options.get(option, "false"))]
        return command, {**os.environ, "PGUSER": self._user, "PGPASSWORD": password}

    def _serve_command(self) -> tuple[list[str], dict[str, str]]:
        command = [sys.executable, "-m", "pgoutput_construct.cli", "serve", str(self.log), "--port", str(self.port)]
        command += ["--slots", str(self._slots)]
        if password := self._parts().get("password"):
            file = self._directory / "password"
            file.touch(0o600)
            file.write_text(str(password))
            command += ["--password-file", str(file)]
        return command, {**os.environ, "PYTHONUNBUFFERED": "1"}

    def _read(self) -> ChangeLog | None:
        """Return the log as it is now, None while it has no segment."""
        try:
            self._opened = ChangeLog(str(self.log), self._opened)
        except PgoutputError:
            return None
        return self._opened

    def _is_logged(self) -> bool:
        if self._read() is None:
            return self._write_if_quiet()
        return not self._copies or self._is_copied()

    def _write_if_quiet(self) -> bool:
        """Give the server something to send where that has been waited for; return False.

        A log begins with something received, and what is confirmed of a copy that comes late is what follows it.
        """
        if time.monotonic() - self._began > _QUIET_SECONDS:
            self._began = time.monotonic()
            with self._connect() as connection:
                connection.execute("SELECT pg_logical_emit_message(true, %s, '')", (_SCRATCH,))
        return False

    def _is_copied(self) -> bool:
        """Return whether the log has a copy of each table that is published."""
        log = self._read()
        if log is None:
            return False
        with self._connect() as connection:
            published = read_published(connection, self._captured)
        copies = list(present_copies(log.index))
        is_behind = any(copy.snapshot.lsn > log.complete_lsn for copy in copies)
        return published.keys() <= {copy.relation_oid for copy in copies} and not is_behind

    def _is_current(self) -> bool:
        log = self._read()
        if log is None:
            return False
        query = "SELECT p.pubname, t.relid::bigint FROM pg_publication p, pg_get_publication_tables(p.pubname) t"
        with self._connect() as connection:
            published = {(name, oid) for name, oid in connection.execute(query) if name in self._captured}
        latest = {reading.name: reading for reading in publication_readings(log.index)}
        logged = {(name, oid) for name, reading in latest.items() if name in self._captured for oid in reading.tables}
        return published == logged and (not self._copies or self._is_copied())

    def _end(self) -> tuple[Lsn, int] | None:
        """Return up to where the log is complete, and the seq of its last copy; None while it has no segment."""
        log = self._read()
        if log is None:
            return None
        return log.complete_lsn, max((copy.seq for copy in present_copies(log.index)), default=-1)

    def _is_confirmed(self, position: Lsn, copied: int) -> bool:
        try:
            slot = json.loads(self._slots.read_text())[self.slot]
        except (OSError, ValueError, KeyError):
            return False
        return int(slot["confirmed"]) >= position and (not self._copies or int(slot["copied"]) >= copied)

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def _wait(self, condition: Callable[[], bool], problem: str, seconds: float | None = None) -> None:
        self._began = time.monotonic()
        end = self._began + (seconds or self._timeout)
        while time.monotonic() < end:
            with suppress(psycopg.Error, PgoutputError):
                if condition():
                    return
            time.sleep(_POLL_SECONDS)
        raise LinkError(f"subscription {self.name}: {problem} after {seconds or self._timeout:.0f} seconds")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
