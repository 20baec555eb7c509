"""Answers the requests of Between.pm during a test: which link a statement concerns, and how far it has read."""

import json
import random
import socketserver
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Any

import psycopg
from psycopg import conninfo

from tools.subscription_tests.link import Link, LinkError
from tools.subscription_tests.statements import Statement, is_on, split_at_drops, statements_of

__all__ = ["Broker"]

_Key = tuple[Any, Any, Any, str]


class Broker:
    """The links of one run of a test; a context manager, which ends them."""

    def __init__(self, directory: Path, user: str, timeout: float, kill_every: float | None = None) -> None:
        """Listen at a socket in a directory.

        Args:
            directory: Where the socket and the directories of links are.
            user: The superuser of the servers of the test.
            timeout: Seconds for which anything is waited for.
            kill_every: Seconds after which a capture or a publisher is killed, again and again; None: never.
        """
        self.socket = directory / "broker"
        self.kills = 0
        self._directory, self._user, self._timeout = directory, user, timeout
        self._kill_every = kill_every
        self._links: dict[_Key, Link] = {}
        self._numbers = count(1)
        self._lock = RLock()
        self._ended = Event()
        self._server = _Server(str(self.socket), self)

    def __enter__(self) -> "Broker":
        Thread(target=self._server.serve_forever, daemon=True).start()
        if self._kill_every is not None:
            Thread(target=self._kill, args=(self._kill_every,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
        for link in self.links:
            link.end(drop_slot=False)

    @property
    def links(self) -> list[Link]:
        """What is between servers and subscriptions now."""
        return list(self._links.values())

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request of Between.pm."""
        try:
            if request["do"] == "split":
                return {"parts": split_at_drops(request["sql"])}
            if request["do"] == "catchup":
                return self._catchup(request["server"], request["name"])
            if request["do"] == "synced":
                return self._synced(request["server"])
            if request["do"] == "copying":
                return self._copying(request["server"])
            with self._lock:
                return {"before": self._before, "after": self._after}[request["do"]](request["server"], request["sql"])
        except (LinkError, psycopg.Error) as error:
            return {"error": str(error).strip()}

    def _before(self, server: str, text: str) -> dict[str, Any]:
        """Do what a text of statements needs before it is run; return the text that is run instead."""
        pieces, notes, end = list[str](), list[str](), 0
        for statement in statements_of(text):
            written, said = self._prepare(server, statement)
            notes += said
            if written is not None:
                pieces += [text[end : statement.begin], written]
                end = statement.end
        return {"sql": "".join([*pieces, text[end:]]), "notes": notes}

    def _prepare(self, server: str, statement: Statement) -> tuple[str | None, list[str]]:
        key = _key(server, statement.name)
        if statement.verb == "CREATE":
            if not is_on(statement.options.get("connect", "true")) or statement.connection is None:
                return None, []
            directory = self._directory / f"{next(self._numbers):02}-{statement.name}"
            if key in self._links:
                self._links.pop(key).end(drop_slot=False)
            about = statement.name, statement.connection, statement.names, statement.options
            self._links[key] = link = Link(*about, directory, self._user, self._timeout)
            notes = link.begin()
            return statement.rewritten(link.address), notes
        if (existing := self._links.get(key)) is None or statement.verb == "DROP":
            return None, []
        return self._altered(existing, statement)

    def _altered(self, link: Link, statement: Statement) -> tuple[str | None, list[str]]:
        notes = list[str]()
        if statement.connection is not None:
            link.alter(server=statement.connection)
            doubled = link.address.replace("'", "''")
            return f"ALTER SUBSCRIPTION {_quoted(statement.name)} CONNECTION '{doubled}'", notes
        if statement.what.endswith("PUBLICATION"):
            link_publications = {
                "SET PUBLICATION": list(statement.names),
                "ADD PUBLICATION": [*link.publications, *statement.names],
                "DROP PUBLICATION": [name for name in link.publications if name not in statement.names],
            }.get(statement.what)
            if link_publications is not None:
                copies = statement.copies if statement.what != "DROP PUBLICATION" else None
                link.alter(publications=link_publications, copies=copies)
            if is_on(statement.options.get("refresh", "true")) and link.capture.is_running:
                try:
                    link.wait_current()
                except LinkError as error:
                    notes.append(str(error))
            return statement.rewritten(None), notes
        if statement.what == "SET":
            link.alter(options=statement.options)
        elif statement.what == "ENABLE":
            link.capture.start()
        elif statement.what == "DISABLE":
            link.capture.stop()
        return None, notes

    def _after(self, server: str, text: str) -> dict[str, Any]:
        """Do what a text of statements needs when it was run."""
        for statement in statements_of(text):
            link = self._links.get(_key(server, statement.name))
            if link is not None and statement.what == "RENAME TO":
                self._links[_key(server, statement.names[0])] = self._links.pop(_key(server, statement.name))
                link.alter(name=statement.names[0])
            elif statement.verb in ("CREATE", "DROP"):
                self._end_dropped(server)
        return {}

    def _end_dropped(self, server: str) -> None:
        """End the links whose subscriptions do not exist any more, or were not created."""
        query = """SELECT subname FROM pg_subscription s JOIN pg_database d ON d.oid = s.subdbid
            WHERE datname = current_database()"""
        with psycopg.connect(conninfo.make_conninfo(server, user=self._user), autocommit=True) as connection:
            names = {name for (name,) in connection.execute(query)}
        ours = _key(server, "")[:3]
        for key in [key for key in self._links if key[:3] == ours and key[3] not in names]:
            self._links.pop(key).end(drop_slot=True)

    def _catchup(self, server: str, name: str) -> dict[str, Any]:
        for link in [link for link in self.links if link.is_of(server, name)]:
            link.wait_served()
        return {}

    def _synced(self, server: str) -> dict[str, Any]:
        for link in self._links_of(server):
            if link.capture.is_running:
                link.wait_served()
        return {}

    def _copying(self, server: str) -> dict[str, Any]:
        """Return when a subscription of a server has not applied the copies of its tables: state ``d`` of a table."""
        if all(link.is_served() for link in self._links_of(server)):
            raise LinkError("all copies of tables are confirmed")
        return {}

    def _links_of(self, server: str) -> list[Link]:
        ours = _key(server, "")[:3]
        return [link for key, link in self._links.items() if key[:3] == ours]

    def _kill(self, seconds: float) -> None:
        while not self._ended.wait(seconds * random.uniform(0.5, 1.5)):
            if links := self.links:
                link = random.choice(links)
                random.choice((link.capture, link.publisher)).kill()
                self.kills += 1


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: str, broker: Broker) -> None:
        self.broker = broker
        super().__init__(path, _Handler)
        Path(path).chmod(0o666)  # the test may run as another user; the directory is that user's alone


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        line = self.rfile.readline()
        if line:
            assert isinstance(self.server, _Server)
            reply = self.server.broker.answer(json.loads(line))
            self.wfile.write(json.dumps(reply).encode() + b"\n")


def _key(server: str, name: str) -> _Key:
    parts = conninfo.conninfo_to_dict(server)
    return parts.get("host"), parts.get("port"), parts.get("dbname"), name


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
