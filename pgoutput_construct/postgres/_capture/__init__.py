"""One capture of a slot: frames come in, segments of the change log leave, and what is durable is confirmed.

``capture_options`` are the arguments of a capture; ``capture_session`` runs it over as many connections as it takes:
each begins with the checks of ``preparation``, then the ``pump`` reads frames, cuts segments and confirms LSNs.
``transaction_tracker`` knows which transactions are open and which are logged already; ``overlap`` compares what the
server sends again with the log; ``gaps`` restarts a log whose slot lost changes; ``slot_watch`` polls the slot over a
second connection. Start reading at ``capture_session``, then ``pump``.

The path of a frame, from the socket to a file::

    _frames.FrameReader             CopyData messages of the connection, many at a time
    replication.ReplicationStream   the stream: START_REPLICATION, Standby Status Updates
    _capture.pump                   the loop; what follows is called for each batch of frames
        columnar.envelope           XLogData and keepalives are told apart, payloads stay where they are
        changelog._segment.block    payloads with their stream state, indexed by columnar.index (kernels)
        apply_checks                what an apply worker refuses though each message is valid
        transaction_tracker         what is open, what is logged already: admits the block, or a part of it
        changelog.writer            appends the block to the current segment; a thread of its own makes it durable
            _index.index_builder    the segment's index
            _segment.segment_writer the Parquet file, in a changelog._store: a directory, or an object store

Invariants: an LSN is confirmed only after the segment that holds everything before it is durable; the log holds each
transaction once, however often it was sent; a failure leaves the log readable and its end known. Nothing here is
public: users call ``pgoutput_construct.postgres.capture``.

**What is confirmed, and when.** A slot has one confirmed LSN (``confirmed_flush``): transactions whose commit record
begins before it are not sent again, and the server may remove their WAL. Only the ``flush_lsn`` of a Standby Status
Update advances it (``ProcessStandbyReplyMessage``, then ``LogicalConfirmReceivedLocation``), and it never moves back
while the server runs. So the capture confirms only what its log would still have after a crash:

- The pump appends payloads to the writer's current segment. When it cuts that segment, the writer's thread makes it
  durable (fsync of the file and of its directory, or a complete upload), together with the ``Position`` up to which
  the log is complete. Only then, in ``Pump._collect``, ``ReplicationStream.confirm`` sends that LSN.
- The LSN is the ``end_lsn`` of the last Commit, Stream Commit, Prepare, Commit Prepared or Rollback Prepared that was
  received completely, never its ``commit_lsn``. After a reconnect the server skips a transaction if and only if its
  commit record begins before the LSN from which it decodes (``SnapBuildXactNeedsSkip``: ``ptr < start_decoding_at``).
  ``commit_lsn`` is where the record begins, so a slot confirmed there would get the transaction again; ``end_lsn`` is
  the first LSN after the record.
- A transaction that is open at the cut does not hold the LSN back: transactions arrive in the order of their commit
  records, so it commits at a later LSN. Rows of a streamed transaction may be in the log before its commit; they have
  no effect until it arrives. If the connection is lost before, the server sends the transaction from its first segment
  again.
- A Stream Abort confirms nothing. It has no LSN unless ``streaming`` is ``parallel``, and 0/0 for a transaction that
  ended with a crash (``ReorderBufferAbortOld``); the next commit or keepalive passes it anyway.
- A non-transactional Message is sent when it is decoded, after everything that committed before it: its LSN is the end
  of its record (``logicalmsg_decode``) and counts as an end.
- A keepalive's ``wal_end`` says that the server has sent everything that ends before it (``WalSndKeepalive`` sends
  ``sentPtr``). It advances the position only if no transaction and no stream is open where it arrives: between Begin
  and Commit part of a transaction is missing. Keepalives advance the slot of a database in which nothing that is
  published changes.
- ``write_lsn`` and ``apply_lsn`` repeat ``flush_lsn``: payloads in memory must not release a synchronous commit that
  waits for ``remote_write``. A flush LSN of 0 is ignored by the server.
- Until the server's history is known to be the log's (``overlap``), nothing is confirmed at all: confirming on the
  wrong server would remove WAL that belongs to someone else.

**What a reconnect repeats.** The server decodes from the later of the requested LSN and ``confirmed_flush``
(``CreateDecodingContext``), and has forgotten everything about the old connection:

- Every transaction whose commit record begins at that LSN or later comes from its Begin, or its first Stream Start,
  again. The rows of a stream that broke off stay in the log without an end, and readers ignore them.
- Relation and Type messages come again before the first row of each table (``RelationSyncCache`` is new), so each
  connection describes its own rows.
- A prepared transaction whose Prepare was confirmed does not come again, only its Commit Prepared or Rollback Prepared.
- The slot may be before the log's end: if the connection broke before the last segment was confirmed, or if the server
  crashed (it writes slots to disk at checkpoints, ``CheckPointReplicationSlots``). Then the capture requests an LSN
  shortly before the log's end, compares the transactions that it receives with the log (``overlap``), and drops them:
  ``TransactionTracker`` recognises a logged transaction by its end LSN, a prepared one by GID and end LSN.
"""
