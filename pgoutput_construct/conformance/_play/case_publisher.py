"""The publisher of a case: sessions as those of any publisher, but for what the case's server does on purpose."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from pgoutput_construct.conformance._play.case_stage import CaseStage
from pgoutput_construct.conformance._play.script_sender import CaseConnection, ScriptSender
from pgoutput_construct.publisher._feed.feed import About, Feed
from pgoutput_construct.publisher._feed.message_feed import Script
from pgoutput_construct.publisher._server.client_connection import ClientConnection
from pgoutput_construct.publisher._server.client_session import ClientSession
from pgoutput_construct.publisher._server.copy_both import CopyBothStream
from pgoutput_construct.publisher._server.query_results import QueryContext
from pgoutput_construct.publisher._server.replication_commands import StartReplication
from pgoutput_construct.publisher._server.service import Service, Settings
from pgoutput_construct.publisher._server.stream_request import requested_options
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.publisher.server import Publisher
from pgoutput_construct.publisher.slots import PLUGIN, Slot, Slots
from pgoutput_construct.wire.types import Lsn

__all__ = ["PASSWORD", "SLOT", "USER", "CaseFeed", "CasePublisher"]

SLOT: Final = "suite"
"""The replication slot that is read from."""
USER: Final = "suite"
PASSWORD: Final = "not a secret"
"""What a client logs in with, whether or not it is asked for it."""


class CaseFeed(Script):
    """What queries are answered from: a server with the tables of a case, and WAL up to its end."""

    def __init__(self, stage: CaseStage) -> None:
        server = stage.case.server
        super().__init__(About(server.version, "7000000000000000028", "postgres", 1, (server.publication,), {}))
        self._end = stage.play.end
        for table in stage.play.tables:
            self.create(table)

    @property
    def position(self) -> Lsn:
        """See Feed."""
        return self._end


class CasePublisher(Publisher):
    """Plays a case to whoever connects."""

    def __init__(
        self, stage: CaseStage, feed: Feed, settings: Settings | None, report: Callable[[str], None] | None
    ) -> None:
        super().__init__(feed, settings, report)
        self.slots = _CaseSlots()
        self.slots.create(SLOT)
        self._stage = stage
        self._refusals = list(stage.case.server.refusals)
        self._start_refusals = list(stage.case.server.start_refusals)

    def session(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ClientSession:
        """Return the session of a client, or of one that is refused on purpose."""
        self._stage.connections += 1
        refusal = self._refusal(self._refusals)
        server = self._stage.case.server
        client = CaseConnection(reader, writer, server.split)
        return _CaseSession(self, client, next(self._numbers), server.greeting, refusal)

    def open_stream(
        self, client: ClientConnection, context: QueryContext, slot: Slot, command: StartReplication
    ) -> CopyBothStream:
        """Return the script's stream; raise Refusal where the case does not apply to what the client asks for."""
        if (refusal := self._refusal(self._start_refusals)) is not None:
            refusal.fatal = False
            raise refusal
        assert isinstance(client, CaseConnection)
        self.slots.read_by(slot, context.settings.get("application_name", "") or USER)
        options = requested_options(command, self.feed.about)
        start = Lsn(max(command.start, slot.confirmed))
        self.slots.keep_two_phase(slot, start, options.two_phase)
        options = replace(options, two_phase=slot.two_phase)  # a slot keeps it
        if lack := self._stage.case.lack(vars(options)):
            self._stage.inapplicable = lack
            raise Refusal("0A000", f"the case does not apply: {lack}", fatal=True)
        return ScriptSender(self, self._stage, client, slot, start, options)

    def _refusal(self, left: list[tuple[str, str]]) -> Refusal | None:
        if not left:
            return None
        self._stage.refused_on_purpose += 1
        return Refusal(*left.pop(0), fatal=True)

    def refuse(self, problem: str) -> None:
        """See Service; the errors that a client was sent say why it does not do what it should."""
        self._stage.refusals.append(problem)
        super().refuse(problem)


class _CaseSlots(Slots):
    """Slots of which one exists, and may be created all the same, until it is read from: some clients want to."""

    def create(self, name: str, plugin: str = PLUGIN, **options: Any) -> Slot:
        """See Slots."""
        known = self.get(name)
        if known is not None and not known.confirmed and not known.client and not self.is_active(name):
            self.drop(name)
        return super().create(name, plugin, **options)


class _CaseSession(ClientSession):
    """A session whose server greets, or refuses, as a case has it."""

    def __init__(
        self, service: Service, client: CaseConnection, process_id: int, greeting: bytes, refusal: Refusal | None
    ) -> None:
        super().__init__(service, client, process_id)
        self._greeting = greeting
        self._refusal = refusal

    async def _authenticate(self, user: str) -> None:
        if self._refusal is not None:
            raise self._refusal
        await super()._authenticate(user)
        await self._client.write(self._greeting)
