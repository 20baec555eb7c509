"""A live client: the transactions of a slot as Python values, one after the other, without a change log.

- **What is delivered.** Each transaction at its commit, in the order of the commits, as a whole. The stream is
  requested with ``streaming = off``: a server writes a large transaction to its own disk until it commits, and this
  client has in memory what has arrived at a time and the caller has not taken: a few megabytes, some tens of them if
  rows are wide.
- **What is confirmed.** Only what the caller says (``confirm``). While everything that was delivered is confirmed, and
  the caller waits for more, the LSNs of keepalives are confirmed, too, so that the slot of a quiet database advances.
- **After a lost connection** the stream is requested from the end of the last transaction that was delivered as a
  whole: a server leaves out what committed before the LSN of START_REPLICATION (``SnapBuildXactNeedsSkip``). A
  transaction that was under way comes again from its beginning, with the same changes in the same order; those that the
  caller has are left out. So within one ``TransactionStream`` nothing is delivered twice. A slot that was created again
  or moved, and a server that is another one, has another timeline or an earlier end, are errors: changes may be
  missing. A program that ends without having confirmed gets the transaction again.
"""

import asyncio
import math
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, Literal, Self, TypeVar, cast, overload

from pgoutput_construct.changelog.log_options import StreamOptions
from pgoutput_construct.compiled.jit import compilation
from pgoutput_construct.errors import PgoutputError, ProtocolError, ReplicationError
from pgoutput_construct.postgres._live_batches import CommittedChange, LiveBatches, load_kernels
from pgoutput_construct.postgres._patience import (
    Patience,
    PatientConnection,
    Stopped,
    collected_signals,
    run_in_thread,
)
from pgoutput_construct.postgres._retry import Retry
from pgoutput_construct.postgres.connection import connect, current_lsn, identify
from pgoutput_construct.postgres.publications import check_publications
from pgoutput_construct.postgres.replication import ReplicationStream
from pgoutput_construct.postgres.replication_slots import (
    check_slot,
    check_unread,
    create_slot,
    end_reader,
    ensure_slot,
    slot_health,
)
from pgoutput_construct.wire import Lsn, PrimaryKeepalive, PrimaryStatusUpdate, Timestamp
from pgoutput_construct.wire.messages import Begin, Commit, PgoutputMessage, StreamAbort
from pgoutput_construct.wire.protocol import CHANGES

__all__ = ["CommittedChange", "CommittedTransaction", "TransactionStream", "stream"]

_WAIT: Final = 1.0
"""Seconds of one wait for a frame; ``close`` ends it earlier."""
_TOGETHER: Final = 0.1
"""Seconds for which confirmations are gathered while more has arrived: each status wakes up the server's process."""

_MANY: Final = 1024
"""Frames that take so long to read that the next ones are received meanwhile."""

Item = TypeVar("Item")
"""What a transaction is made of: a CommittedChange, or a message."""


class CommittedTransaction(Generic[Item]):
    """A committed transaction; iterating it returns its changes as they arrive, each once.

    An iteration that ends early (``break``) can be continued by another one.
    """

    def __init__(self, transactions: "TransactionStream[Item]", begin: Begin) -> None:
        self._stream = transactions
        self._begin = begin
        self._buffer = deque[Item]()
        """The changes that were received, and not given to the caller."""
        self._received = self._passed = 0
        """The number of changes that were received; and over the present connection."""
        self._received_end: Lsn | None = None
        self._pending: Future[Any] | None = None
        self.end_lsn: Lsn | None = None
        """The LSN of the end of the transaction, which ``confirm`` confirms; None until the caller has all changes."""

    @property
    def xid(self) -> int:
        """Its transaction ID."""
        return self._begin.xid

    @property
    def commit_lsn(self) -> Lsn:
        """The LSN of its commit record."""
        return self._begin.final_lsn

    @property
    def commit_time(self) -> Timestamp:
        """When it committed, by the server's clock."""
        return self._begin.commit_time

    def __iter__(self) -> Iterator[Item]:
        while True:
            while self._buffer:
                yield self._buffer.popleft()
            if self._received_end is not None:
                self.end_lsn = self._received_end
                return
            self._stream._fill(self)

    async def __aiter__(self) -> AsyncIterator[Item]:
        while True:
            while self._pending is None and self._buffer:
                yield self._buffer.popleft()
            if self._pending is None and self._received_end is not None:
                self.end_lsn = self._received_end
                return
            await self._stream._in_thread(self, lambda: self._stream._fill(self))

    def __repr__(self) -> str:
        return f"<transaction {self.xid} committed at {self.commit_lsn}>"


class TransactionStream(Generic[Item]):
    """The transactions of a slot, from ``stream``: an iterator, and for asyncio an asynchronous one.

    It is a context manager. All methods but ``stop`` and ``close`` are for one thread, or task, at a time. After an
    error it cannot be used any more: open another one, which gets everything from the last confirmed transaction on.
    """

    def __init__(
        self,
        dsn: str,
        options: StreamOptions,
        *,
        temporary: bool,
        create: bool,
        messages: bool,
        values: Literal["python", "raw"],
        status_interval: float,
        reconnect_seconds: float | None,
        handle_signals: bool,
    ) -> None:
        self._dsn, self._options = dsn, options
        self._temporary, self._create, self._is_raw, self._values = temporary, create, messages, values
        self._interval = status_interval
        self._retry = Retry(reconnect_seconds)
        self._server: dict[str, Any] | None = None
        """The identity of the server of the first connection."""
        self._delivered = self._confirmed = self._acknowledged = Lsn(0)
        """The end of the last transaction that was received; what the caller has confirmed; and the server was told."""
        self._arrived = deque[Any]()
        """What arrived and belongs to no transaction yet (``LiveBatch.items``)."""
        self._current: CommittedTransaction[Item] | None = None
        self._is_within = False
        self._bytes = self._transactions = 0
        self._walsender: int | None = None
        self._error: BaseException | None = None
        self._closed = threading.Event()
        self._stops = False
        self._interrupts = SimpleQueue[None]()
        """What ends a pause. Its ``put`` is reentrant, as a signal handler needs it; an Event's ``set`` is not."""
        self._signals = collected_signals(handle_signals, self.stop)
        self._use = threading.Lock()
        self._user: int | None = None
        self._executor: ThreadPoolExecutor | None = None
        self._pending: Future[Any] | None = None
        self._connection = self._open()

    @property
    def confirmed_lsn(self) -> Lsn:
        """The LSN that was last confirmed to the server."""
        return max(self._acknowledged, self._connection.confirmed_lsn)

    def confirm(self, transaction: CommittedTransaction[Item] | None = None) -> None:
        """Confirm that a transaction, and everything before it, is stored: it will not be sent again.

        A status is sent at once, or, while more has arrived that the caller has not taken, ten times a second; at the
        latest when the next one is due, and by ``close``. Over a connection that was just lost nothing can be
        confirmed; then the next one does. A program that is killed before gets the transaction again.

        Args:
            transaction: One whose changes have all been read; None for the one that was returned last.

        Raises:
            ValueError: Changes of the transaction have not been read yet, or it is of another stream.
            ReplicationError: The stream was closed, or ended with an error.
        """
        self._check()
        chosen = transaction or self._current
        if chosen is None:
            return
        if chosen._stream is not self:
            raise ValueError(f"{chosen!r} is of another stream")
        if chosen.end_lsn is None:
            raise ValueError(f"{chosen!r} has changes that were not read yet: read all, then confirm")
        self._confirmed = max(self._confirmed, chosen.end_lsn)
        try:
            self._connection.confirm(self._confirmed, together=_TOGETHER if self._arrived else 0.0)
        except ReplicationError as error:
            if self._temporary or not error.transient:
                raise
            # The connection is lost: the next one, which reading opens, confirms it.

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> CommittedTransaction[Item]:
        """Return the next transaction, and wait for it; what was not read of the one before is skipped.

        Raises:
            StopIteration: The stream was stopped or closed.
            ReplicationError: The server refuses the stream or skips changes, or cannot be reached any more; or the
                stream ended with an error before.
            ProtocolError: The server sends what no server sends.
        """
        with self._reading():
            if (current := self._current) is not None:
                while current._received_end is None and not (self._stops or self._closed.is_set()):
                    current._buffer.clear()
                    self._advance(current)
                current._buffer.clear()
                current.end_lsn = current._received_end
            begin = None if self._stops else self._begin()
            if begin is None:
                if not self._closed.is_set():
                    with suppress(ReplicationError):  # it may be lost
                        self._connection.send_confirmed()
                raise StopIteration
            self._current = CommittedTransaction(self, begin)
            while self._current._received_end is None and self._arrived:
                if isinstance(self._arrived[0], PgoutputError):
                    break  # after what came before it
                self._advance(self._current)
            return self._current

    async def __aiter__(self) -> AsyncIterator[CommittedTransaction[Item]]:
        while (transaction := await self._in_thread(self, lambda: next(self, None))) is not None:
            yield transaction

    def stop(self) -> None:
        """End the iteration before the next transaction; may be called from any thread or signal handler, and again.

        The transaction that is being read is received as a whole, and can be confirmed.
        """
        self._stops = True
        self._interrupts.put(None)
        self._connection.frames.wake()

    def close(self) -> None:
        """End the stream; may be called from any thread or signal handler, and again.

        A wait for the next transaction ends the iteration; within a transaction it is an error, as its rest is missing.
        """
        self._closed.set()
        self._interrupts.put(None)
        self._connection.frames.wake()
        if self._user == threading.get_ident():
            return  # called by a signal handler while this thread reads: that closes the connection when it ends
        if self._executor is not None:
            self._executor.shutdown()
        with self._use:
            self._connection.close()

    def __enter__(self) -> Self:
        self._signals.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._signals.__exit__(None, None, None)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)
        self._signals.__exit__(None, None, None)

    def _is_over(self) -> bool:
        """Return whether the iteration is to end now: not before the end of a transaction, unless it was closed."""
        return self._closed.is_set() or (self._stops and not self._is_within)

    def _check(self) -> None:
        if self._error is not None:
            raise ReplicationError("this stream ended with an error: close it, and open another one") from self._error
        if self._closed.is_set():
            raise ReplicationError("this stream was closed")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Read: in one thread at a time, and never again after an error, which may have lost a part of the stream."""
        if self._error is not None:
            self._check()
        with self._use:
            self._user = threading.get_ident()
            try:
                yield
            except StopIteration:
                raise
            except BaseException as error:
                self._error = error
                raise
            finally:
                self._user = None
                if self._closed.is_set():
                    self._connection.close()

    async def _in_thread(
        self, owner: "TransactionStream[Item] | CommittedTransaction[Item]", work: Callable[[], Any]
    ) -> Any:
        """Run ``work`` in a thread; if the task is cancelled meanwhile, the owner's next call has its result."""
        if owner._pending is None:
            if self._closed.is_set():
                return work()  # which does not wait any more
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"stream of {self._options.slot}")
            owner._pending = self._executor.submit(work)
        try:
            found = await asyncio.shield(asyncio.wrap_future(owner._pending))
        except asyncio.CancelledError:
            raise
        except BaseException:
            owner._pending = None
            raise
        owner._pending = None
        return found

    def _begin(self) -> Begin | None:
        """Return the Begin of the next transaction; None if the stream was stopped or closed."""
        while not self._is_over():
            try:
                found = self._next()
            except ReplicationError as error:
                self._reconnect(error)
                continue
            if found is None and self._arrived and type(self._arrived[0]) is list:
                raise ProtocolError(f"{self._arrived[0][0].op} outside of a transaction")
            if found is None or isinstance(found, StreamAbort):
                continue  # PostgreSQL 18 sends an abort of what was never streamed, also with streaming off
            if not isinstance(found, Begin):
                raise ProtocolError(f"{type(found).__name__} outside of a transaction")
            self._is_within = True
            return found
        return None

    def _fill(self, transaction: CommittedTransaction[Item]) -> None:
        """Receive changes of a transaction, those that have arrived together, or its end."""
        with self._reading():
            while transaction._received_end is None and (self._arrived or not transaction._buffer):
                if transaction._buffer and isinstance(self._arrived[0], PgoutputError):
                    return  # after what came before it
                if self._closed.is_set():
                    raise ReplicationError(
                        f"the stream was closed within {transaction!r}: discard what you have of it; it comes again"
                    )
                self._advance(transaction)

    def _advance(self, transaction: CommittedTransaction[Item]) -> None:
        """Receive the next message or changes of a transaction, over as many connections as it takes."""
        if self._arrived and type(self._arrived[0]) is list:
            self._take(transaction, self._arrived.popleft())
            return
        try:
            message = self._next()
        except ReplicationError as error:
            self._reconnect(error)
            self._resume(transaction)
            return
        if isinstance(message, Commit):
            if message.commit_lsn != transaction.commit_lsn:  # apply_handle_commit() refuses it, too
                raise ProtocolError(f"{transaction!r} ends with a Commit at {message.commit_lsn}: it is not its own")
            if transaction._passed < transaction._received:
                raise ReplicationError(f"{transaction!r} was sent again with fewer changes than before")
            self._is_within = False
            self._transactions += 1
            transaction._received_end = self._delivered = message.end_lsn
        elif isinstance(message, Begin):
            raise ProtocolError(f"Begin of transaction {message.xid} within {transaction!r}")
        elif message is not None and self._is_raw:
            if type(message) in CHANGES:
                self._take(transaction, [message])
            elif transaction._passed == transaction._received:
                # Each connection sends descriptions of its own: they are no part of what is counted.
                transaction._buffer.append(cast("Item", message))

    def _take(self, transaction: CommittedTransaction[Item], changes: list[Any]) -> None:
        """Give changes to a transaction, but for those that it has from an earlier connection."""
        transaction._passed += len(changes)
        new = transaction._passed - transaction._received
        if new > 0:
            transaction._received = transaction._passed
            transaction._buffer.extend(changes[-new:])

    def _resume(self, transaction: CommittedTransaction[Item]) -> None:
        """Go on with a transaction over another connection, which sends it from its beginning."""
        begin = self._begin()
        if begin is not None and (begin.xid, begin.final_lsn) != (transaction.xid, transaction.commit_lsn):
            raise ReplicationError(
                f"slot {self._options.slot!r} sends transaction {begin.xid} after the connection was lost, and not "
                f"{transaction.xid} again, of which a part was read: the server lost it, or the slot was moved"
            )
        transaction._passed = 0

    def _next(self) -> PgoutputMessage | None:
        """Return the next message, which is no change of a row; None if none arrived for a while."""
        if not self._arrived:
            was_read_ahead = self._connection.frames.is_reading_ahead
            if not was_read_ahead:
                self._connection.send_confirmed()
            frames = self._connection.drain(_WAIT)
            if was_read_ahead:
                self._connection.send_confirmed(together=_TOGETHER)
            if len(frames) >= _MANY:
                self._connection.frames.read_ahead()
            if not frames:
                return None
            batch = self._batches.read(frames)
            self._arrived.extend(batch.items)
            self._bytes += batch.size
            if any(isinstance(item, PrimaryKeepalive) and item.reply_requested for item in batch.items):
                self._connection.send_status()
            if not self._arrived:
                return None
        if type(self._arrived[0]) is list:
            return None  # changes
        item = self._arrived.popleft()
        if isinstance(item, PgoutputError):
            raise item
        if isinstance(item, PrimaryKeepalive):
            if not self._is_within and self._confirmed >= self._delivered:
                self._connection.confirm(item.wal_end)
            return None
        if isinstance(item, PrimaryStatusUpdate):
            return None  # nobody asked for it; other frames are ignored by an apply worker, too
        message: PgoutputMessage = item
        return message

    def _reconnect(self, error: ReplicationError) -> None:
        """Connect again after an error; raise it if that cannot help, or has not helped for too long."""
        self._acknowledged = self.confirmed_lsn
        while not self._is_over():
            self._connection.close()
            if self._temporary or self._retry.recurs(error, self._transactions):
                raise error
            with suppress(Empty):
                self._interrupts.get(timeout=self._retry.failed(error, self._bytes))
            if self._is_over():
                return
            try:
                self._connection = self._open()
            except Stopped:
                return
            except ReplicationError as another:
                error = another
                continue
            return

    def _open(self) -> ReplicationStream:
        self._retry.begin(self._bytes)
        batches = LiveBatches(self._options.layout(), self._values, as_messages=self._is_raw)
        patience = Patience(stop=lambda: "closed" if self._is_over() else None)
        slot = self._options.slot
        with closing(connect(self._dsn, replication=False, patience=patience)) as asking:
            self._options.check_server(asking.info.server_version)
            check_publications(asking, self._options.publications)
            with compilation():  # before a slot is created, or a stream begins: no server waits for it
                run_in_thread(load_kernels, Patience(math.inf, patience.stop), lambda _: None)
            known = Lsn(0) if self._temporary else self._check_slot(asking)
            end = current_lsn(asking)  # after a slot was created, whose position is the end of the WAL until then
        connection = connect(self._dsn, patience=patience)
        try:
            self._check_server(identify(connection), end)
            if self._temporary:
                create_slot(connection, slot, temporary=True)
            position = max(self._acknowledged, self._confirmed)
            opened = ReplicationStream(
                connection, self._options, self._delivered, confirmed_lsn=position, status_interval=self._interval
            )
        except BaseException:
            connection.close()
            raise
        self._walsender = connection.info.backend_pid
        self._batches = batches
        self._arrived.clear()
        opened.silence.limit *= 2**self._retry.silent
        self._retry.connected(f"slot {slot!r} from {self._delivered}")
        if position > known and not self._temporary:
            opened.send_status()  # what was confirmed while there was no connection, or over one that was breaking
        return opened

    def _check_slot(self, asking: PatientConnection) -> Lsn:
        """Create the slot the first time; later, check that nobody has moved or replaced it since; return its LSN."""
        slot, is_first = self._options.slot, self._server is None
        if is_first and self._create:
            ensure_slot(asking, slot)
        if self._walsender is not None:
            end_reader(asking, slot, self._walsender)  # it may not have noticed that the connection was lost
        check_unread(asking, slot)
        if any(health.two_phase for health in slot_health(asking, slot)):
            raise ReplicationError(
                f"slot {slot!r} has two_phase: what it sends at PREPARE TRANSACTION may be rolled back; "
                "capture it into a change log (pgoutput capture), or create another one"
            )
        position = check_slot(asking, slot)
        if is_first:
            self._delivered = self._confirmed = self._acknowledged = position
        elif position > max(self._acknowledged, self._confirmed):
            raise ReplicationError(
                f"slot {slot!r} is at {position}, and was confirmed up to {self._acknowledged} over the connection "
                "that was lost: it was created again, or another reader moved it; what is in between is not sent"
            )
        return position

    def _check_server(self, server: dict[str, Any], end: Lsn) -> None:
        """Check that the server is the one of the first connection, and has what was received from it."""
        known = self._server = self._server or server
        lost = [
            f"{name}: {known[name]}, now {server[name]}"
            for name in ("system_identifier", "database", "timeline")
            if known[name] != server[name]
        ]
        if not lost and end < self._delivered:
            lost = [f"its WAL ends at {end}, and transactions up to {self._delivered} were received"]
        if lost:
            raise ReplicationError(
                f"the server is another one, or was reset ({'; '.join(lost)}): what it has lost is not known; compare "
                "what you have stored with it, then open another stream"
            )


@overload
def stream(
    dsn: str,
    slot: str,
    publications: Sequence[str],
    *,
    create_slot: bool = ...,
    temporary: bool = ...,
    messages: Literal[False] = ...,
    values: Literal["python", "raw"] = ...,
    binary: bool = ...,
    origin: Literal["any", "none"] = ...,
    status_interval: float = ...,
    reconnect_seconds: float | None = ...,
    handle_signals: bool = ...,
) -> TransactionStream[CommittedChange]: ...
@overload
def stream(
    dsn: str,
    slot: str,
    publications: Sequence[str],
    *,
    create_slot: bool = ...,
    temporary: bool = ...,
    messages: Literal[True],
    values: Literal["python", "raw"] = ...,
    binary: bool = ...,
    origin: Literal["any", "none"] = ...,
    status_interval: float = ...,
    reconnect_seconds: float | None = ...,
    handle_signals: bool = ...,
) -> TransactionStream[PgoutputMessage]: ...
def stream(
    dsn: str,
    slot: str,
    publications: Sequence[str],
    *,
    create_slot: bool = False,
    temporary: bool = False,
    messages: bool = False,
    values: Literal["python", "raw"] = "python",
    binary: bool = False,
    origin: Literal["any", "none"] = "any",
    status_interval: float = 10.0,
    reconnect_seconds: float | None = None,
    handle_signals: bool = False,
) -> TransactionStream[Any]:
    """Open the transactions of a slot: an iterator of transactions, each of which is one of changes.

    >>> with stream(dsn, "mine", ["shop"], create_slot=True, handle_signals=True) as transactions:  # doctest: +SKIP
    ...     for transaction in transactions:
    ...         for change in transaction:
    ...             print(change.table, change.op, change.new)
    ...         transactions.confirm(transaction)  # it is stored: the server need not send it again

    In asyncio, ``async with``, ``async for transaction in transactions`` and ``async for change in transaction`` do the
    same. While the caller works, statuses are sent on their own; a lost connection is opened again. ``stop`` ends the
    iteration, also from another thread.

    Args:
        dsn: The connection string, as libpq reads it; its password appears in no error.
        slot: The name of the slot, of the plugin pgoutput and without two_phase.
        publications: The names of the publications, or one name.
        create_slot: Create the slot if it does not exist. It retains WAL until it is read, or dropped.
        temporary: Create a slot that is dropped when the connection ends. A lost connection is then an error.
        messages: Iterate over the messages between Begin and Commit, as ``pgoutput_construct.parse`` returns them,
            instead of changes.
        values: ``python`` for Python values, ``raw`` for those that were sent: bytes and Binary.
        binary: Request values in binary format.
        origin: ``any``, or ``none`` for only those changes that have no replication origin.
        status_interval: Seconds between two statuses; they are sent at least four times per ``wal_sender_timeout``.
        reconnect_seconds: How long to try to connect again after the last contact; None for no limit.
        handle_signals: Whether SIGINT and SIGTERM end the iteration as ``stop`` does, within ``with`` and in the main
            thread only. A second signal has its usual effect.

    Raises:
        ReplicationError: The server cannot be reached; the slot, or a publication, does not exist or is not usable.
    """
    names = (publications,) if isinstance(publications, str) else tuple(publications)
    options = StreamOptions(slot=slot, publications=names, binary=binary, origin=origin)
    return TransactionStream(
        dsn,
        options,
        temporary=temporary,
        create=create_slot,
        messages=messages,
        values=values,
        status_interval=status_interval,
        reconnect_seconds=reconnect_seconds,
        handle_signals=handle_signals,
    )
