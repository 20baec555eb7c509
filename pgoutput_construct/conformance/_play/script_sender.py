"""The stream of a case: takes the steps of its script, one after the other."""

import asyncio
import math
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from pgoutput_construct.conformance._play.case_stage import CaseStage, StreamLog
from pgoutput_construct.conformance.steps import (
    DropConnection,
    ExpectConfirmed,
    ExpectHeld,
    ExpectReply,
    ExpectReported,
    SendBytes,
    SendCopyData,
    SendKeepalive,
    SendMessage,
    SplitWrites,
    StaySilent,
    Step,
)
from pgoutput_construct.publisher._server.client_connection import ClientConnection, ConnectionEnded
from pgoutput_construct.publisher._server.copy_both import CopyBothStream
from pgoutput_construct.publisher._server.service import Service
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.publisher.slots import Slot
from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.connection_engine import build_connection
from pgoutput_construct.wire.engine import build_frame
from pgoutput_construct.wire.frames import StandbyStatusUpdate, XLogData
from pgoutput_construct.wire.options import LAYOUT_OPTIONS
from pgoutput_construct.wire.protocol import ReplicationOptions
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["CaseConnection", "ScriptSender"]

_POLL_SECONDS: Final = 0.004
_BATCH_BYTES: Final = 1 << 16
"""Bytes of messages that are written together."""
_KEEPALIVE_SECONDS: Final = 0.5
"""Between keepalives after the end of the script."""
_SPLIT_BYTES: Final = 2500
"""Bytes that are sent in pieces, after which everything is sent as it comes: results of queries may be large."""
_PAUSE_SECONDS: Final = 0.0002
"""Between two pieces, so that the client may read each before the next one comes."""


class CaseConnection(ClientConnection):
    """The server side of a connection; sends in pieces of some bytes, if it was told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, split: int) -> None:
        """Begin a connection.

        Args:
            reader: Receives from the client.
            writer: Sends to the client.
            split: The size of a piece in bytes; 0: everything is sent as it comes.
        """
        super().__init__(reader, writer)
        self._split, self._left = split, _SPLIT_BYTES
        connection: socket.socket = writer.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def write(self, data: bytes) -> None:
        """Send bytes, and wait while the client is slow to read."""
        at = 0
        while at < len(data):
            size = self._split if self._split and self._left > 0 else len(data)
            await super().write(data[at : at + size])
            at += size
            self._left -= size
            if self._split:
                await asyncio.sleep(_PAUSE_SECONDS)

    def split(self, size: int) -> None:
        """Send what comes next in pieces of a size, 0 for as it comes."""
        self._split, self._left = size, _SPLIT_BYTES


class ScriptSender(CopyBothStream):
    """Plays a script to one client, from the LSN that it asks for or has confirmed."""

    def __init__(
        self,
        service: Service,
        stage: CaseStage,
        client: CaseConnection,
        slot: Slot,
        start: Lsn,
        options: ReplicationOptions,
    ) -> None:
        """Prepare to play.

        Args:
            service: The publisher.
            stage: What is known of the client.
            client: The client's connection.
            slot: The slot.
            start: The LSN from which the client reads.
            options: The options that it asked for.
        """
        super().__init__(client, {name: getattr(options, name) for name in LAYOUT_OPTIONS})
        self._service = service
        self._stage = stage
        self._slot = slot
        self._connection = client
        self._log = StreamLog(start)
        stage.streams.append(self._log)
        self._is_first = len(stage.streams) == 1
        self._described: dict[str, str] = {}
        """The last description of each table that this connection was sent."""
        self._sent_end = start
        """The end of the last unit that was sent."""
        self._batch = bytearray()
        self._replies = self._replies_before = 0
        self._is_silent = False
        self._awaited = ""
        """What is wrong if the client leaves now."""
        self._last_message = self._last_messages()

    def _last_messages(self) -> dict[int, int]:
        script = enumerate(self._stage.play.script)
        return {step.unit: at for at, step in script if isinstance(step, SendMessage) and step.unit is not None}

    async def run(self) -> None:
        """Play until the client leaves, or the script ends the connection."""
        try:
            await super().run()
        finally:
            self._log.left = not self._log.dropped
            if self._log.left and self._awaited:
                self._stage.problem(f"it ended the connection, and {self._awaited}")

    async def _replied(self, status: StandbyStatusUpdate) -> None:
        self._replies += 1
        self._service.slots.confirm(self._slot, status.flush_lsn)
        await asyncio.to_thread(self._stage.status, status.flush_lsn)
        if status.reply_requested and not self._is_silent:
            await self._client.send(self._keepalive(self._sent_end, False))

    async def _watch(self) -> None:
        timeout = self._service.settings.wal_sender_timeout or math.inf
        while True:
            await asyncio.sleep(min(timeout / 10, 1.0))
            if time.monotonic() - self._heard > timeout and not self._is_silent:
                self._stage.problem(f"it sent no status for {timeout:g} seconds, the server's wal_sender_timeout")
                self._stage.dropped(self._log)
                raise Refusal("57P05", "terminating walsender process due to replication timeout", fatal=True)

    async def _send(self) -> None:
        for at, step in enumerate(self._stage.play.script):
            if self._is_due(at, step):
                if not isinstance(step, SendMessage):
                    await self._flush()
                await _STEPS[type(step)](self, step)
            self._log.sent = at + 1
            if isinstance(step, SendMessage) and step.unit is not None and self._last_message[step.unit] == at:
                self._stage.sent[step.unit] += 1
                self._sent_end = max(self._sent_end, self._stage.play.ends.get(step.unit, self._sent_end))
        await self._flush()
        self._stage.is_played = True
        while True:
            await self._client.send(self._keepalive(self._stage.play.end, True))
            await asyncio.sleep(_KEEPALIVE_SECONDS)

    def _is_due(self, at: int, step: Step) -> bool:
        """Return whether this connection gets a step, and note it if it is taken once."""
        if isinstance(step, SendMessage):
            fits = not step.only or (step.only == "first") == self._is_first
            return fits and (step.unit is None or self._stage.play.ends.get(step.unit, math.inf) > self._log.start)
        is_due = at not in self._stage.taken or getattr(step, "again", False)
        self._stage.taken.add(at)
        return is_due

    async def _message(self, step: SendMessage) -> None:
        for name in step.needs:
            if self._described.get(table := name.rpartition("#")[0]) != name:
                self._described[table] = name
                for payload in self._stage.play.descriptions[name]:
                    self._add(payload, Lsn(0))
        self._add(step.payload, step.lsn)
        if len(self._batch) >= _BATCH_BYTES:
            await self._flush()

    def _add(self, payload: bytes, lsn: Lsn) -> None:
        frame = build_frame(XLogData(lsn, lsn, Timestamp.now(), payload), **self._layout)
        self._batch += build_connection(m.CopyData(frame))

    async def _flush(self) -> None:
        if self._batch:
            data, self._batch = bytes(self._batch), bytearray()
            await self._client.write(data)

    async def _keep_alive(self, step: SendKeepalive) -> None:
        if step.reply_requested:
            self._replies_before = self._replies
        await self._client.send(self._keepalive(step.wal_end, step.reply_requested))

    async def _copy_data(self, step: SendCopyData) -> None:
        await self._client.send(m.CopyData(step.data))

    async def _bytes(self, step: SendBytes) -> None:
        await self._client.write(step.data)

    async def _drop(self, step: DropConnection) -> None:
        self._stage.dropped(self._log)
        if step.forgets:
            self._slot.confirmed = 0
        if step.how == "copy_done":
            await self._client.send(m.ServerCopyDone(), m.CommandComplete("COPY 0"))
        if step.how != "reset":
            self._client.close()
            raise ConnectionEnded
        self._client.abort()
        raise ConnectionResetError("cut by the script")

    async def _stay_silent(self, step: StaySilent) -> None:
        self._is_silent = True
        if step.until_left:
            self._stage.last_drop = time.monotonic()  # a client may end, and be started again
        await asyncio.sleep(step.seconds)
        self._is_silent = False
        if step.until_left:
            self._stage.problem(f"it kept a connection on which nothing came for {step.seconds:g} seconds")

    async def _split_writes(self, step: SplitWrites) -> None:
        self._connection.split(step.size)

    async def _expect_reported(self, step: ExpectReported) -> None:
        awaited = f"had not reported {step.transactions} transactions"
        if not await self._until(lambda: self._stage.count_reported() >= step.transactions, step.seconds, awaited):
            found = self._stage.count_reported()
            self._stage.problem(
                f"it had reported {found} instead of {step.transactions} transactions {step.seconds:g} seconds after "
                "they were sent"
            )

    async def _expect_held(self, step: ExpectHeld) -> None:
        await asyncio.sleep(step.seconds)
        if (found := await asyncio.to_thread(self._stage.count_reported)) > step.transactions:
            self._stage.problem(f"it had reported {found} transactions when only {step.transactions} were committed")

    async def _expect_reply(self, step: ExpectReply) -> None:
        awaited = "had not sent the status that a keepalive asked for"
        if not await self._until(lambda: self._replies > self._replies_before, step.seconds, awaited):
            self._stage.problem(f"it sent no status for {step.seconds:g} seconds after a keepalive that asked for one")

    async def _expect_confirmed(self, step: ExpectConfirmed) -> None:
        awaited = f"had confirmed {Lsn(self._slot.confirmed)} instead of {step.lsn}"
        if not await self._until(lambda: self._slot.confirmed >= step.lsn, step.seconds, awaited):
            self._stage.problem(
                f"it had confirmed {Lsn(self._slot.confirmed)} instead of {step.lsn} after {step.seconds:g} seconds"
            )

    async def _until(self, is_met: Callable[[], bool], seconds: float, awaited: str) -> bool:
        self._awaited, deadline = awaited, time.monotonic() + seconds
        while not (has_met := await asyncio.to_thread(is_met)) and time.monotonic() < deadline:
            await asyncio.sleep(_POLL_SECONDS)
        self._awaited = ""
        return has_met


_STEPS: Final[Mapping[type[Step], Callable[[ScriptSender, Any], Awaitable[None]]]] = {
    SendMessage: ScriptSender._message,
    SendKeepalive: ScriptSender._keep_alive,
    SendCopyData: ScriptSender._copy_data,
    SendBytes: ScriptSender._bytes,
    DropConnection: ScriptSender._drop,
    StaySilent: ScriptSender._stay_silent,
    SplitWrites: ScriptSender._split_writes,
    ExpectReported: ScriptSender._expect_reported,
    ExpectHeld: ScriptSender._expect_held,
    ExpectReply: ScriptSender._expect_reply,
    ExpectConfirmed: ScriptSender._expect_confirmed,
}
"""The method that takes each step."""
