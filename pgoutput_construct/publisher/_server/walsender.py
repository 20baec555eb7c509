"""The stream to one client: what it is sent, what it confirms, and how either side ends it.

Source: ``walsender.c`` of PostgreSQL (WalSndLoop(), ProcessRepliesIfAny(), WalSndKeepaliveIfNecessary()).
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.publisher._feed.feed import Pace
from pgoutput_construct.publisher._feed.rendering import Withholding
from pgoutput_construct.publisher._feed.script_cursor import cursor_of
from pgoutput_construct.publisher._server.asked import Asker
from pgoutput_construct.publisher._server.commands import StartReplication
from pgoutput_construct.publisher._server.conversation import ClientConnection, Ended
from pgoutput_construct.publisher._server.refusals import Refusal, warning
from pgoutput_construct.publisher._server.service import Service
from pgoutput_construct.publisher._server.stream_request import asked, named_publications, unknown_publications
from pgoutput_construct.publisher.faults import Fault
from pgoutput_construct.publisher.slots import Slot
from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.connection_engine import build_connection
from pgoutput_construct.wire.engine import build_frame, parse_frame
from pgoutput_construct.wire.frames import PrimaryKeepalive, StandbyStatusUpdate, XLogData
from pgoutput_construct.wire.options import LAYOUT_OPTIONS
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["WalSender"]

_POLL_SECONDS: Final = 0.1
_WATCH_SECONDS: Final = 1.0
_SKIPS_SINCE: Final = 180000
"""The first server that skips a publication that does not exist (LoadPublications() in ``pgoutput.c``)."""
_RATE_PARTS: Final = 20
"""Into how many parts of a second a rate is divided."""


class WalSender:
    """Sends a feed to a client from a position on."""

    def __init__(
        self, service: Service, client: ClientConnection, asker: Asker, slot: Slot, command: StartReplication
    ) -> None:
        """Check what the client asks; raises Refusal."""
        self._service = service
        self._client = client
        self._slot = slot
        start = max(int(command.start), slot.confirmed)
        self._service.feed.refresh()
        order = self._service.feed.order()
        if 0 < start < order.begins:
            # As ReplicationSlotAcquire() says it of a slot whose WAL was removed.
            hint = f"What ended up to {Lsn(order.begins)} was pruned. Copy the tables, and use another slot."
            problem = f'can no longer get changes from replication slot "{slot.name}"'
            raise Refusal("55000", problem, hint=hint)
        options = asked(command, self._service.feed.about)
        self._unknown = unknown_publications(command, self._service.feed.about)
        self._service.slots.keep_two_phase(slot, start, options.two_phase)
        options = replace(options, two_phase=slot.two_phase)
        self._layout: dict[str, Any] = {name: getattr(options, name) for name in LAYOUT_OPTIONS}
        """The options that decide layouts, as keywords of build_frame."""
        self._asked = f"proto_version={options.proto_version}, streaming={options.streaming}"
        copied = slot.copied if start else order.copied_until
        two_phase_at = slot.two_phase_at if slot.two_phase else None
        pace = Pace() if self._service.settings.own_pace else None
        self._service.slots.read_by(slot, asker.settings.get("application_name", ""))
        named = named_publications(command)
        replaces = self._service.settings.replaces_rows
        withholding = None if replaces else Withholding(named, slot.withheld, partial(self._service.withhold, slot))
        feed, encoding, self._missed = self._service.feed, client.encoding, tuple(slot.missed)
        asked_for = encoding, self._missed, named, withholding
        self._cursor = cursor_of(feed, options, start, copied, two_phase_at, pace, *asked_for)
        for lack in self._cursor.lacking:
            self._service.told(f"slot {slot.name}: {lack}")
        self._has_ended = False
        """Whether this side has ended the stream."""
        self._heard = time.monotonic()
        self._asked_to_reply = False
        self._is_stalled = False
        self._sent = Lsn(start)
        """End of the last transaction that the client has been sent; a keepalive must not say more, since a client
        confirms what a keepalive says when it has nothing left to apply."""
        self._told = Lsn(0)

    async def _keep_alive(self, asks: bool) -> None:
        """Send a keepalive, which may ask for a reply at once."""
        if not (self._is_stalled or self._has_ended):
            await self._client.send(self._keepalive(asks))

    def _keepalive(self, asks: bool) -> m.CopyData:
        return m.CopyData(build_frame(PrimaryKeepalive(self._sent, Timestamp.now(), int(asks)), **self._layout))

    async def _show(self, fault: Fault) -> None:
        """Show a fault to the client, once."""
        fault.shown = True
        await _FAULTS[fault.name](self, **fault.arguments)

    async def _cut(self) -> None:
        """Drop the connection without a word, as a network does."""
        self._client.abort()
        raise ConnectionResetError("cut on purpose")

    async def _cut_inside(self) -> None:
        """Send half of a message, then close the connection."""
        frame = XLogData(Lsn(0), Lsn(0), Timestamp.now(), bytes(100))
        data = build_connection(m.CopyData(build_frame(frame, **self._layout)))
        await self._client.write(data[: len(data) // 2])
        await self._cut()

    async def _stall(self, seconds: float) -> None:
        """Send nothing for a while, not even keepalives."""
        self._is_stalled = True
        await asyncio.sleep(seconds)
        self._is_stalled = False

    async def _storm(self, count: int) -> None:
        """Send many keepalives at once."""
        for _ in range(count):
            await self._keep_alive(asks=False)

    async def _demand(self) -> None:
        """Send a keepalive that asks for a reply at once."""
        await self._keep_alive(asks=True)

    async def _send_empty(self) -> None:
        """Send a frame without a payload, as PostgreSQL 13 could."""
        frame = XLogData(Lsn(0), Lsn(0), Timestamp.now(), b"")
        await self._client.write(build_connection(m.CopyData(build_frame(frame, **self._layout))))

    async def _move_clock(self, seconds: float) -> None:
        """Let the server's clock be wrong by some seconds from here on."""
        self._cursor.clock = seconds

    async def _fail(self, sqlstate: str, message: str) -> None:
        """End the connection with an error."""
        raise Refusal(sqlstate, message, fatal=True)

    async def run(self) -> None:
        """Stream until the client ends its side."""
        self._service.told(f"slot {self._slot.name}: a client reads from {self._sent} on, as {self._asked}")
        tasks = {asyncio.create_task(work) for work in (self._send(), self._listen(), self._watch())}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in done:
            task.result()
        done_here = () if self._has_ended else (m.ServerCopyDone(),)
        await self._client.send(*done_here, m.CommandComplete("COPY 0"))

    async def _listen(self) -> None:
        """Take in what the client says, until it says that it is done."""
        while True:
            message = await self._client.receive()
            self._heard = time.monotonic()
            if isinstance(message, m.CopyData):
                await self._reply(message.data)
            elif isinstance(message, m.ClientCopyDone | m.CopyFail):
                return
            else:
                raise Ended

    async def _reply(self, data: bytes) -> None:
        try:
            frame = parse_frame(data, **self._layout)
        except DecodeError as error:
            raise Refusal("08P01", f"unexpected message from a standby: {error}", fatal=True) from error
        if not isinstance(frame, StandbyStatusUpdate):
            return
        self._service.slots.confirm(self._slot, frame.flush_lsn)
        self._cursor.confirmed = max(self._cursor.confirmed, frame.flush_lsn)
        self._keep_copied()
        self._service.confirmed(self._slot)
        self._asked_to_reply = False
        if frame.reply_requested:
            await self._keep_alive(asks=False)

    async def _send(self) -> None:
        rate = self._service.settings.rate
        most = None if rate is None else max(rate // _RATE_PARTS, 1)
        while not self._service.slots.end_stream(self._slot):
            position = self._service.feed.position  # asked before: more may come meanwhile
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
        self._service.told(f"slot {self._slot.name}: its client knows more tables now, and is to come back for them")
        self._has_ended = True
        await self._client.send(m.ServerCopyDone())
        await asyncio.Event().wait()  # the client ends its side, too

    async def _skip_publications(self) -> None:
        """Warn of the publications that do not exist, as PostgreSQL does from 18 on; before, that is an error."""
        for name in self._unknown:
            if self._service.feed.about.server_version < _SKIPS_SINCE:
                raise Refusal("42704", f'publication "{name}" does not exist')
            hint = "Create the publication if it does not exist."
            detail = "The publication does not exist at this point in the WAL."
            skipped = Refusal("55000", f'skipped loading publication "{name}"', detail=detail, hint=hint)
            self._service.told(f"slot {self._slot.name}: {skipped.message}")
            await self._client.send(warning(skipped))
        self._unknown = []

    def _keep_copied(self) -> None:
        """Note in the slot which copies its client has, or gets: not while it may lack one that came late."""
        if not self._cursor.has_late:
            self._service.slots.has_all(self._slot, self._missed)
            self._slot.copied = max(self._slot.copied, self._cursor.copied)

    async def _wait(self, position: Lsn) -> None:
        """Tell the client once how far everything is sent, then look for more."""
        self._sent = max(self._sent, position)
        self._cursor.told = self._sent
        if self._told != self._sent:
            self._told = self._sent
            await self._keep_alive(asks=False)
        await self._service.more(_POLL_SECONDS)

    async def _watch(self) -> None:
        """Ask a client that is silent whether it is there, and end the connection of one that is not.

        It waits for nothing: a client that does not read may not keep it from looking at the clock.
        """
        timeout = self._service.settings.wal_sender_timeout or math.inf
        while True:
            await asyncio.sleep(min(timeout / 10, _WATCH_SECONDS))
            silent = time.monotonic() - self._heard
            if silent > timeout:
                raise Refusal("57P05", "terminating walsender process due to replication timeout", fatal=True)
            if silent > timeout / 2 and not (self._asked_to_reply or self._is_stalled or self._has_ended):
                self._asked_to_reply = True
                self._client.post(self._keepalive(asks=True))


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
"""What shows each of FAULTS."""
