"""The walsender: the stream to one client, its confirmations, keepalives and timeouts, and how either side ends it.

Source: ``walsender.c`` of PostgreSQL (WalSndLoop(), ProcessRepliesIfAny(), WalSndKeepaliveIfNecessary()).
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from pgoutput_construct.publisher._feed.cursor import cursor_for
from pgoutput_construct.publisher._feed.feed import Pace
from pgoutput_construct.publisher._feed.rendering import Withholding
from pgoutput_construct.publisher._server.client_connection import ClientConnection
from pgoutput_construct.publisher._server.copy_both import CopyBothStream
from pgoutput_construct.publisher._server.query_results import QueryContext
from pgoutput_construct.publisher._server.replication_commands import StartReplication
from pgoutput_construct.publisher._server.service import Service
from pgoutput_construct.publisher._server.stream_request import (
    named_publications,
    requested_options,
    unknown_publications,
)
from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.refusals import Refusal, warning
from pgoutput_construct.publisher.slots import Slot
from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.connection_engine import build_connection
from pgoutput_construct.wire.engine import build_frame
from pgoutput_construct.wire.frames import StandbyStatusUpdate, XLogData
from pgoutput_construct.wire.options import LAYOUT_OPTIONS
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["WalSender"]

_POLL_SECONDS: Final = 0.1
_WATCH_SECONDS: Final = 1.0
_SKIPS_SINCE: Final = 180000
"""The first server that skips a publication that does not exist (LoadPublications() in ``pgoutput.c``)."""
_RATE_PARTS: Final = 20
"""Chunks per second into which a rate is divided."""


class WalSender(CopyBothStream):
    """Sends a feed to a client, from an LSN on."""

    def __init__(
        self, service: Service, client: ClientConnection, context: QueryContext, slot: Slot, command: StartReplication
    ) -> None:
        """Check the client's request, and prepare to stream.

        Args:
            service: What all sessions share.
            client: The client's connection.
            context: The session's context.
            slot: The slot, acquired by this client.
            command: The client's START_REPLICATION.

        Raises:
            Refusal: The options are invalid, or what the client needs was pruned.
        """
        self._service = service
        self._slot = slot
        start = max(int(command.start), slot.confirmed)
        self._service.feed.refresh()
        order = self._service.feed.order()
        if 0 < start < order.begins:
            # The error of ReplicationSlotAcquire() for a slot whose WAL was removed.
            hint = f"Transactions up to {Lsn(order.begins)} were pruned. Copy the tables, and use another slot."
            problem = f'can no longer get changes from replication slot "{slot.name}"'
            raise Refusal("55000", problem, hint=hint)
        is_due = (each.seq > slot.copied or (each.end_lsn or 0) > start for each in order.copies)
        options = requested_options(command, self._service.feed.about, bool(slot.missed) or any(is_due))
        named = named_publications(command)
        self._unknown = unknown_publications(named, self._service.feed.about)
        self._service.slots.keep_two_phase(slot, start, options.two_phase)
        options = replace(options, two_phase=slot.two_phase)
        super().__init__(client, {name: getattr(options, name) for name in LAYOUT_OPTIONS})
        self._options = f"proto_version={options.proto_version}, streaming={options.streaming}"
        copied = slot.copied if start else order.copied_until
        two_phase_at = slot.two_phase_at if slot.two_phase else None
        pace = Pace() if self._service.settings.own_pace else None
        self._service.slots.read_by(slot, context.settings.get("application_name", ""))
        replaces = self._service.settings.replaces_rows
        withholding = None if replaces else Withholding(named, slot.withheld, partial(self._service.withhold, slot))
        feed = self._service.feed
        self._missed_lists = slot.missed_lists  # read first, since another list may add to them meanwhile
        self._missed = tuple(slot.missed)
        self._cursor = cursor_for(feed)(
            feed,
            options,
            start,
            copied,
            two_phase_at,
            pace=pace,
            encoding=client.encoding,
            missed=self._missed,
            publications=named,
            withholding=withholding,
        )
        for lack in self._cursor.lacking:
            self._service.report(f"slot {slot.name}: {lack}")
        self._reply_requested = False
        self._is_stalled = False
        self._sent = Lsn(start)
        """The end of the last transaction that the client was sent. A keepalive must not have a later LSN: a client
        that has nothing left to apply confirms it (send_feedback() in ``worker.c``)."""
        self._announced = Lsn(0)

    async def _keep_alive(self, reply_requested: bool) -> None:
        """Send a keepalive, which may request an immediate reply."""
        if not (self._is_stalled or self._has_ended):
            await self._client.send(self._keepalive(self._sent, reply_requested))

    async def _show(self, fault: Fault) -> None:
        """Show a fault to the client, once."""
        fault.shown = True
        await _FAULTS[fault.name](self, **fault.arguments)

    async def _cut(self) -> None:
        """Reset the connection, as a network failure does."""
        self._client.abort()
        raise ConnectionResetError("cut on purpose")

    async def _cut_inside(self) -> None:
        """Send half of a message, then close the connection."""
        frame = XLogData(Lsn(0), Lsn(0), Timestamp.now(), bytes(100))
        data = build_connection(m.CopyData(build_frame(frame, **self._layout)))
        await self._client.write(data[: len(data) // 2])
        await self._cut()

    async def _stall(self, seconds: float) -> None:
        """Send nothing for some seconds, not even keepalives."""
        self._is_stalled = True
        await asyncio.sleep(seconds)
        self._is_stalled = False

    async def _storm(self, count: int) -> None:
        """Send many keepalives at once."""
        for _ in range(count):
            await self._keep_alive(reply_requested=False)

    async def _demand(self) -> None:
        """Send a keepalive that requests an immediate reply."""
        await self._keep_alive(reply_requested=True)

    async def _send_empty(self) -> None:
        """Send a frame without a payload, as PostgreSQL 13 could."""
        frame = XLogData(Lsn(0), Lsn(0), Timestamp.now(), b"")
        await self._client.write(build_connection(m.CopyData(build_frame(frame, **self._layout))))

    async def _move_clock(self, seconds: float) -> None:
        """Shift the server's clock by some seconds from here on."""
        self._cursor.clock = seconds

    async def _fail(self, sqlstate: str, message: str) -> None:
        """End the connection with an error."""
        raise Refusal(sqlstate, message, fatal=True)

    async def run(self) -> None:
        """Stream until the client sends CopyDone."""
        self._service.report(f"slot {self._slot.name}: a client reads from {self._sent} on, with {self._options}")
        await super().run()

    async def _replied(self, status: StandbyStatusUpdate) -> None:
        self._service.slots.confirm(self._slot, status.flush_lsn)
        self._cursor.confirmed = max(self._cursor.confirmed, status.flush_lsn)
        self._keep_copied()
        self._service.confirmed(self._slot)
        self._reply_requested = False
        if status.reply_requested:
            await self._keep_alive(reply_requested=False)

    async def _send(self) -> None:
        rate = self._service.settings.rate
        most = None if rate is None else max(rate // _RATE_PARTS, 1)
        while not self._service.slots.end_stream(self._slot):
            position = self._service.feed.position  # read first, since more may be added meanwhile
            chunk = await asyncio.to_thread(self._cursor.next_chunk, most)
            if chunk is None:
                await self._wait(max(self._cursor.position, position))
            else:
                if chunk.changes and self._unknown:
                    await self._skip_publications()
                await self._client.write(chunk.data)
                self._sent = max(self._sent, chunk.position)
                self._keep_copied()
                if chunk.fault is not None:
                    await self._show(chunk.fault)
                await asyncio.sleep(chunk.changes / rate if rate else chunk.pause)
        self._service.report(
            f"slot {self._slot.name}: the stream ends, since the client knows more tables now: it should start again"
        )
        self._has_ended = True
        await self._client.send(m.ServerCopyDone())
        await asyncio.Event().wait()  # until the client sends CopyDone, too

    async def _skip_publications(self) -> None:
        """Warn about publications that do not exist, as PostgreSQL 18 does; before, that is an error."""
        for name in self._unknown:
            if self._service.feed.about.server_version < _SKIPS_SINCE:
                raise Refusal("42704", f'publication "{name}" does not exist')
            hint = "Create the publication if it does not exist."
            detail = "The publication does not exist at this point in the WAL."
            skipped = Refusal("55000", f'skipped loading publication "{name}"', detail=detail, hint=hint)
            self._service.report(f"slot {self._slot.name}: {skipped.message}")
            await self._client.send(warning(skipped))
        self._unknown = []

    def _keep_copied(self) -> None:
        """Record in the slot which copies its client has or gets, unless it may lack a late one."""
        if not self._cursor.has_late:
            self._service.slots.has_all(self._slot, self._missed, self._missed_lists)
            self._slot.copied = max(self._slot.copied, self._cursor.copied)

    async def _wait(self, position: Lsn) -> None:
        """Send a keepalive with the LSN up to which everything was sent, once; then look for more."""
        self._sent = max(self._sent, position)
        self._cursor.told = self._sent
        if self._announced != self._sent:
            self._announced = self._sent
            await self._keep_alive(reply_requested=False)
        await self._service.more(_POLL_SECONDS)

    async def _watch(self) -> None:
        """Request a reply of a silent client, and end the connection after wal_sender_timeout.

        It never waits for the client: one that does not read must not delay the timeout.
        """
        timeout = self._service.settings.wal_sender_timeout or math.inf
        while True:
            await asyncio.sleep(min(timeout / 10, _WATCH_SECONDS))
            silent = time.monotonic() - self._heard
            if silent > timeout:
                raise Refusal("57P05", "terminating walsender process due to replication timeout", fatal=True)
            if silent > timeout / 2 and not (self._reply_requested or self._is_stalled or self._has_ended):
                self._reply_requested = True
                self._client.post(self._keepalive(self._sent, reply_requested=True))


_FAULTS: Final[Mapping[str, Callable[..., Awaitable[None]]]] = {
    "cut": WalSender._cut,
    "cut inside a message": WalSender._cut_inside,
    "stall": WalSender._stall,
    "keepalive storm": WalSender._storm,
    "keepalive that demands a reply": WalSender._demand,
    "empty payload": WalSender._send_empty,
    "clock going back": WalSender._move_clock,
    "error": WalSender._fail,
}
"""The method that shows each of FAULTS."""
