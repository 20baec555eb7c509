"""The stream to one client: what it is sent, what it confirms, and how either side ends it.

Source: ``walsender.c`` of PostgreSQL (WalSndLoop(), ProcessRepliesIfAny(), WalSndKeepaliveIfNecessary()).
"""

import asyncio
import math
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.publisher.commands import StartReplication
from pgoutput_construct.publisher.conversation import Ended
from pgoutput_construct.publisher.pace import Pace
from pgoutput_construct.publisher.refusals import Refusal, warning
from pgoutput_construct.publisher.rendering import Withholding
from pgoutput_construct.publisher.request import asked, named_publications, unknown_publications
from pgoutput_construct.publisher.script_cursor import cursor_of
from pgoutput_construct.publisher.slots import Slot
from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.engine import build_frame, parse_frame
from pgoutput_construct.wire.frames import PrimaryKeepalive, StandbyStatusUpdate
from pgoutput_construct.wire.options import LAYOUT_OPTIONS
from pgoutput_construct.wire.types import Lsn, Timestamp

if TYPE_CHECKING:
    from pgoutput_construct.publisher.session import Session

__all__ = ["WalSender"]

_POLL_SECONDS: Final = 0.1
_WATCH_SECONDS: Final = 1.0
_SKIPS_SINCE: Final = 180000
"""The first server that skips a publication that does not exist (LoadPublications() in ``pgoutput.c``)."""
_RATE_PARTS: Final = 20
"""Into how many parts of a second a rate is divided."""


class WalSender:
    """Sends a feed to a client from a position on."""

    def __init__(self, session: "Session", slot: Slot, command: StartReplication) -> None:
        """Check what the client asks; raises Refusal."""
        self._session = session
        self._publisher = session.publisher
        self._slot = slot
        start = max(int(command.start), slot.confirmed)
        self._publisher.feed.refresh()
        order = self._publisher.feed.order()
        if 0 < start < order.begins:
            # As ReplicationSlotAcquire() says it of a slot whose WAL was removed.
            hint = f"What ended up to {Lsn(order.begins)} was pruned. Copy the tables, and use another slot."
            problem = f'can no longer get changes from replication slot "{slot.name}"'
            raise Refusal("55000", problem, hint=hint)
        options = asked(command, self._publisher.feed.about)
        self._unknown = unknown_publications(command, self._publisher.feed.about)
        self._publisher.slots.keep_two_phase(slot, start, options.two_phase)
        options = replace(options, two_phase=slot.two_phase)
        self.layout: dict[str, Any] = {name: getattr(options, name) for name in LAYOUT_OPTIONS}
        """The options that decide layouts, as keywords of build_frame."""
        self._asked = f"proto_version={options.proto_version}, streaming={options.streaming}"
        copied = slot.copied if start else order.copied_until
        two_phase_at = slot.two_phase_at if slot.two_phase else None
        pace = Pace() if self._publisher.settings.own_pace else None
        self._publisher.slots.read_by(slot, session.asker.settings.get("application_name", ""))
        named = named_publications(command)
        replaces = self._publisher.settings.replaces_rows
        withholding = None if replaces else Withholding(named, slot.withheld, partial(self._publisher.withhold, slot))
        feed, encoding, self._missed = self._publisher.feed, session.encoding, tuple(slot.missed)
        asked_for = encoding, self._missed, named, withholding
        self._cursor = cursor_of(feed, options, start, copied, two_phase_at, pace, *asked_for)
        for lack in self._cursor.lacking:
            self._publisher.told(f"slot {slot.name}: {lack}")
        self._has_ended = False
        """Whether this side has ended the stream."""
        self._heard = time.monotonic()
        self._asked_to_reply = False
        self._is_stalled = False
        self._sent = Lsn(start)
        """End of the last transaction that the client has been sent; a keepalive must not say more, since a client
        confirms what a keepalive says when it has nothing left to apply."""
        self._told = Lsn(0)

    async def write(self, data: bytes) -> None:
        """Send bytes to the client."""
        await self._session.write(data)

    def abort(self) -> None:
        """Drop the connection without a word."""
        self._session.abort()
        raise ConnectionResetError("cut on purpose")

    def move_clock(self, seconds: float) -> None:
        """Let the server's clock be wrong by so many seconds."""
        self._cursor.clock = seconds

    async def stall(self, seconds: float) -> None:
        """Say nothing for a while."""
        self._is_stalled = True
        await asyncio.sleep(seconds)
        self._is_stalled = False

    async def keepalive(self, asks: bool) -> None:
        """Send a keepalive, which may ask for a reply at once."""
        if not (self._is_stalled or self._has_ended):
            await self._session.send(self._keepalive(asks))

    def _keepalive(self, asks: bool) -> m.CopyData:
        return m.CopyData(build_frame(PrimaryKeepalive(self._sent, Timestamp.now(), int(asks)), **self.layout))

    async def run(self) -> None:
        """Stream until the client ends its side."""
        self._publisher.told(f"slot {self._slot.name}: a client reads from {self._sent} on, as {self._asked}")
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
        await self._session.send(*done_here, m.CommandComplete("COPY 0"))

    async def _listen(self) -> None:
        """Take in what the client says, until it says that it is done."""
        while True:
            message = await self._session.receive()
            self._heard = time.monotonic()
            if isinstance(message, m.CopyData):
                await self._reply(message.data)
            elif isinstance(message, m.ClientCopyDone | m.CopyFail):
                return
            else:
                raise Ended

    async def _reply(self, data: bytes) -> None:
        try:
            frame = parse_frame(data, **self.layout)
        except DecodeError as error:
            raise Refusal("08P01", f"unexpected message from a standby: {error}", fatal=True) from error
        if not isinstance(frame, StandbyStatusUpdate):
            return
        self._publisher.slots.confirm(self._slot, frame.flush_lsn)
        self._cursor.confirmed = max(self._cursor.confirmed, frame.flush_lsn)
        self._keep_copied()
        self._publisher.confirmed(self._slot)
        self._asked_to_reply = False
        if frame.reply_requested:
            await self.keepalive(asks=False)

    async def _send(self) -> None:
        rate = self._publisher.settings.rate
        most = None if rate is None else max(rate // _RATE_PARTS, 1)
        while not self._publisher.slots.end_stream(self._slot):
            position = self._publisher.feed.position  # asked before: more may come meanwhile
            chunk = await asyncio.to_thread(self._cursor.next_chunk, most)
            if chunk is None:
                await self._wait(max(self._cursor.position, position))
            else:
                if chunk.changes and self._unknown:
                    await self._skip_publications()
                await self.write(chunk.data)
                self._sent = max(self._sent, chunk.position)
                self._keep_copied()
                if chunk.fault is not None:
                    await chunk.fault.show(self)
                await asyncio.sleep(chunk.changes / rate if rate else chunk.pause)
        self._publisher.told(f"slot {self._slot.name}: its client knows more tables now, and is to come back for them")
        self._has_ended = True
        await self._session.send(m.ServerCopyDone())
        await asyncio.Event().wait()  # the client ends its side, too

    async def _skip_publications(self) -> None:
        """Warn of the publications that do not exist, as PostgreSQL does from 18 on; before, that is an error."""
        for name in self._unknown:
            if self._publisher.feed.about.server_version < _SKIPS_SINCE:
                raise Refusal("42704", f'publication "{name}" does not exist')
            hint = "Create the publication if it does not exist."
            detail = "The publication does not exist at this point in the WAL."
            skipped = Refusal("55000", f'skipped loading publication "{name}"', detail=detail, hint=hint)
            self._publisher.told(f"slot {self._slot.name}: {skipped.message}")
            await self._session.send(warning(skipped))
        self._unknown = []

    def _keep_copied(self) -> None:
        """Note in the slot which copies its client has, or gets: not while it may lack one that came late."""
        if not self._cursor.has_late:
            self._publisher.slots.has_all(self._slot, self._missed)
            self._slot.copied = max(self._slot.copied, self._cursor.copied)

    async def _wait(self, position: Lsn) -> None:
        """Tell the client once how far everything is sent, then look for more."""
        self._sent = max(self._sent, position)
        self._cursor.told = self._sent
        if self._told != self._sent:
            self._told = self._sent
            await self.keepalive(asks=False)
        await self._publisher.more(_POLL_SECONDS)

    async def _watch(self) -> None:
        """Ask a client that is silent whether it is there, and end the connection of one that is not.

        It waits for nothing: a client that does not read may not keep it from looking at the clock.
        """
        timeout = self._publisher.settings.wal_sender_timeout or math.inf
        while True:
            await asyncio.sleep(min(timeout / 10, _WATCH_SECONDS))
            silent = time.monotonic() - self._heard
            if silent > timeout:
                raise Refusal("57P05", "terminating walsender process due to replication timeout", fatal=True)
            if silent > timeout / 2 and not (self._asked_to_reply or self._is_stalled or self._has_ended):
                self._asked_to_reply = True
                self._session.post(self._keepalive(asks=True))
