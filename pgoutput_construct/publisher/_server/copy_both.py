"""A replication stream in CopyBoth mode: who sends and who listens, and how either side ends it."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from pgoutput_construct.errors import DecodeError
from pgoutput_construct.publisher._server.client_connection import ClientConnection, ConnectionEnded
from pgoutput_construct.publisher.refusals import Refusal
from pgoutput_construct.wire import connection_messages as m
from pgoutput_construct.wire.engine import build_frame, parse_frame
from pgoutput_construct.wire.frames import PrimaryKeepalive, StandbyStatusUpdate
from pgoutput_construct.wire.types import Lsn, Timestamp

__all__ = ["CopyBothStream"]


class CopyBothStream(ABC):
    """One stream to one client; what is sent, and what its replies mean, is up to a subclass."""

    def __init__(self, client: ClientConnection, layout: Mapping[str, Any]) -> None:
        """Prepare to stream.

        Args:
            client: The client's connection.
            layout: The options that determine the layout of frames, as keywords of ``build_frame``.
        """
        self._client = client
        self._layout = layout
        self._has_ended = False
        """Whether this side has sent CopyDone."""
        self._heard = time.monotonic()

    @abstractmethod
    async def _send(self) -> None:
        """Send the stream; it ends when this returns."""

    @abstractmethod
    async def _replied(self, status: StandbyStatusUpdate) -> None:
        """Process a status of the client."""

    @abstractmethod
    async def _watch(self) -> None:
        """Watch over the client; raise Refusal to end the connection."""

    async def run(self) -> None:
        """Stream until the client sends CopyDone."""
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
        """Process messages of the client, until it sends CopyDone or CopyFail."""
        while True:
            message = await self._client.receive()
            self._heard = time.monotonic()
            if isinstance(message, m.CopyData):
                await self._reply(message.data)
            elif isinstance(message, m.ClientCopyDone | m.CopyFail):
                return
            elif isinstance(message, m.Terminate):
                raise ConnectionEnded
            else:  # a command, before the client has ended its side of the copy (ProcessRepliesIfAny())
                raise Refusal("08P01", f'invalid standby message type "{message.TAG.decode()}"', fatal=True)

    async def _reply(self, data: bytes) -> None:
        try:
            frame = parse_frame(data, **self._layout)
        except DecodeError as error:
            raise Refusal("08P01", f"unexpected message from a standby: {error}", fatal=True) from error
        if isinstance(frame, StandbyStatusUpdate):
            await self._replied(frame)

    def _keepalive(self, wal_end: int, reply_requested: bool) -> m.CopyData:
        frame = PrimaryKeepalive(Lsn(wal_end), Timestamp.now(), int(reply_requested))
        return m.CopyData(build_frame(frame, **self._layout))
