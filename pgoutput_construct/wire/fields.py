# Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

"""Logical replication messages: what the specification says of each place in a message."""

from collections.abc import Mapping
from typing import Final

from pgoutput_construct.wire.spec_metadata import Described

__all__ = ["FIELDS"]

FIELDS: Final[Mapping[str, Described]] = {
    "Begin": Described("Begin", "Opens a transaction that has committed; its changes follow."),
    "Begin.tag": Described("Byte1('B')", "Marks a Begin."),
    "Begin.final_lsn": Described("Int64 (XLogRecPtr)", "LSN of the commit record, the same as Commit's commit_lsn."),
    "Begin.commit_time": Described("Int64 (TimestampTz)", "Time of the commit, in microseconds since 2000-01-01 UTC."),
    "Begin.xid": Described("Int32 (TransactionId)", "Transaction ID."),
    "Message": Described(
        "Message", "A message written by pg_logical_emit_message(), sent when the option messages is on."
    ),
    "Message.tag": Described("Byte1('M')", "Marks a Message."),
    "Message.xid": Described("Int32 (TransactionId)", "Top-level transaction ID, present only inside a stream."),
    "Message.flags": Described(
        "Int8", "Bit 1 is set when the message belongs to a transaction.", bits={1: "transactional"}
    ),
    "Message.lsn": Described("Int64 (XLogRecPtr)", "LSN of the message."),
    "Message.prefix": Described("String", "Prefix given by the writer."),
    "Message.content_length": Described("Int32", "Length of the content, in bytes."),
    "Message.content": Described("Byten", "Content given by the writer, never converted to the client's encoding."),
    "Commit": Described("Commit", "Ends a transaction."),
    "Commit.tag": Described("Byte1('C')", "Marks a Commit."),
    "Commit.flags": Described("Int8(0)", "Reserved."),
    "Commit.commit_lsn": Described("Int64 (XLogRecPtr)", "LSN at which the commit record starts."),
    "Commit.end_lsn": Described("Int64 (XLogRecPtr)", "LSN after the commit record: the position to confirm."),
    "Commit.commit_time": Described("Int64 (TimestampTz)", "Time of the commit, in microseconds since 2000-01-01 UTC."),
    "Origin": Described("Origin", "Names the replication origin of the transaction that has just begun."),
    "Origin.tag": Described("Byte1('O')", "Marks an Origin."),
    "Origin.origin_lsn": Described(
        "Int64 (XLogRecPtr)", "Where the transaction committed in the WAL of its origin, 0/0 inside a stream."
    ),
    "Origin.name": Described("String", "Name of the origin."),
    "Relation": Described("Relation", "Describes a table before its first change."),
    "Relation.tag": Described("Byte1('R')", "Marks a Relation."),
    "Relation.xid": Described(
        "Int32 (TransactionId)", "Transaction or subtransaction ID, present only inside a stream."
    ),
    "Relation.relation_oid": Described("Int32 (Oid)", "OID of the table."),
    "Relation.namespace": Described("String", "Schema of the table, empty for pg_catalog."),
    "Relation.name": Described("String", "Name of the table."),
    "Relation.replica_identity": Described(
        "Int8",
        "Replica identity setting, as relreplident in pg_class.",
        values={"d": "default", "n": "nothing", "f": "full", "i": "index"},
    ),
    "Relation.column_count": Described("Int16", "Number of columns that follow."),
    "Relation.columns": Described("repeat_1", "One published column of the table."),
    "Relation.columns[]": Described("", "One published column of the table."),
    "Relation.columns[].flags": Described(
        "Int8", "Bit 1 is set when the column is part of the replica identity.", bits={1: "key"}
    ),
    "Relation.columns[].name": Described("String", "Name of the column."),
    "Relation.columns[].type_oid": Described("Int32 (Oid)", "OID of the column's type."),
    "Relation.columns[].type_modifier": Described("Int32", "Type modifier, as atttypmod in pg_attribute; -1 for none."),
    "Type": Described("Type", "Names a type that is not built in, before the Relation that uses it."),
    "Type.tag": Described("Byte1('Y')", "Marks a Type."),
    "Type.xid": Described("Int32 (TransactionId)", "Transaction or subtransaction ID, present only inside a stream."),
    "Type.type_oid": Described("Int32 (Oid)", "OID of the type."),
    "Type.namespace": Described("String", "Schema of the type, empty for pg_catalog."),
    "Type.name": Described("String", "Name of the type; for a domain, of its base type."),
    "Insert": Described("Insert", "A new row."),
    "Insert.tag": Described("Byte1('I')", "Marks an Insert."),
    "Insert.xid": Described("Int32 (TransactionId)", "Transaction or subtransaction ID, present only inside a stream."),
    "Insert.relation_oid": Described("Int32 (Oid)", "OID of a table that a Relation has described."),
    "Insert.new_tag": Described("Byte1('N')", "Announces the new row."),
    "Insert.new": Described("TupleData", "Values of the new row, in the order of the Relation's columns."),
    "Insert.new.column_count": Described("Int16", "Number of columns that follow."),
    "Insert.new.columns": Described("repeat_1", "One value."),
    "Insert.new.columns[]": Described(
        "Byte1",
        "What is sent of the value.",
        values={
            "n": "NULL.",
            "u": "An unchanged TOASTed value, which is not sent.",
            "t": "The value as text, by its type's output function.",
            "b": "The value as binary, by its type's send function; under the option binary.",
        },
    ),
    "Insert.new.columns[]:t.length": Described("Int32", "Length of the value, in bytes."),
    "Insert.new.columns[]:t.data": Described("Byten", "The value in text format, in the client's encoding."),
    "Insert.new.columns[]:b.length": Described("Int32", "Length of the value, in bytes."),
    "Insert.new.columns[]:b.data": Described("Byten", "The value in binary format."),
    "Update": Described("Update", "A changed row."),
    "Update.tag": Described("Byte1('U')", "Marks an Update."),
    "Update.xid": Described("Int32 (TransactionId)", "Transaction or subtransaction ID, present only inside a stream."),
    "Update.relation_oid": Described("Int32 (Oid)", "OID of a table that a Relation has described."),
    "Update.old_kind": Described(
        "Byte1",
        "The row before the change: the whole row, or its key where that changed or is TOASTed, or nothing.",
        values={
            "K": "The old key; columns outside the key are null.",
            "O": "The whole old row, under REPLICA IDENTITY FULL.",
        },
    ),
    "Update.old": Described(
        "choice_1", "The row before the change: the whole row, or its key where that changed or is TOASTed, or nothing."
    ),
    "Update.old:K.column_count": Described("Int16", "Number of columns that follow."),
    "Update.old:K.columns": Described("repeat_1", "One value."),
    "Update.old:K.columns[]": Described(
        "Byte1",
        "What is sent of the value.",
        values={
            "n": "NULL.",
            "u": "An unchanged TOASTed value, which is not sent.",
            "t": "The value as text, by its type's output function.",
            "b": "The value as binary, by its type's send function; under the option binary.",
        },
    ),
    "Update.old:K.columns[]:t.length": Described("Int32", "Length of the value, in bytes."),
    "Update.old:K.columns[]:t.data": Described("Byten", "The value in text format, in the client's encoding."),
    "Update.old:K.columns[]:b.length": Described("Int32", "Length of the value, in bytes."),
    "Update.old:K.columns[]:b.data": Described("Byten", "The value in binary format."),
    "Update.old:O.column_count": Described("Int16", "Number of columns that follow."),
    "Update.old:O.columns": Described("repeat_1", "One value."),
    "Update.old:O.columns[]": Described(
        "Byte1",
        "What is sent of the value.",
        values={
            "n": "NULL.",
            "u": "An unchanged TOASTed value, which is not sent.",
            "t": "The value as text, by its type's output function.",
            "b": "The value as binary, by its type's send function; under the option binary.",
        },
    ),
    "Update.old:O.columns[]:t.length": Described("Int32", "Length of the value, in bytes."),
    "Update.old:O.columns[]:t.data": Described("Byten", "The value in text format, in the client's encoding."),
    "Update.old:O.columns[]:b.length": Described("Int32", "Length of the value, in bytes."),
    "Update.old:O.columns[]:b.data": Described("Byten", "The value in binary format."),
    "Update.new_tag": Described("Byte1('N')", "Announces the new row."),
    "Update.new": Described("TupleData", "Values of the new row, in the order of the Relation's columns."),
    "Update.new.column_count": Described("Int16", "Number of columns that follow."),
    "Update.new.columns": Described("repeat_1", "One value."),
    "Update.new.columns[]": Described(
        "Byte1",
        "What is sent of the value.",
        values={
            "n": "NULL.",
            "u": "An unchanged TOASTed value, which is not sent.",
            "t": "The value as text, by its type's output function.",
            "b": "The value as binary, by its type's send function; under the option binary.",
        },
    ),
    "Update.new.columns[]:t.length": Described("Int32", "Length of the value, in bytes."),
    "Update.new.columns[]:t.data": Described("Byten", "The value in text format, in the client's encoding."),
    "Update.new.columns[]:b.length": Described("Int32", "Length of the value, in bytes."),
    "Update.new.columns[]:b.data": Described("Byten", "The value in binary format."),
    "Delete": Described("Delete", "A removed row."),
    "Delete.tag": Described("Byte1('D')", "Marks a Delete."),
    "Delete.xid": Described("Int32 (TransactionId)", "Transaction or subtransaction ID, present only inside a stream."),
    "Delete.relation_oid": Described("Int32 (Oid)", "OID of a table that a Relation has described."),
    "Delete.old_kind": Described(
        "Byte1",
        "The removed row: whole, or its key.",
        values={
            "K": "The old key; columns outside the key are null.",
            "O": "The whole old row, under REPLICA IDENTITY FULL.",
        },
    ),
    "Delete.old": Described("choice_1", "The removed row: whole, or its key."),
    "Delete.old:K.column_count": Described("Int16", "Number of columns that follow."),
    "Delete.old:K.columns": Described("repeat_1", "One value."),
    "Delete.old:K.columns[]": Described(
        "Byte1",
        "What is sent of the value.",
        values={
            "n": "NULL.",
            "u": "An unchanged TOASTed value, which is not sent.",
            "t": "The value as text, by its type's output function.",
            "b": "The value as binary, by its type's send function; under the option binary.",
        },
    ),
    "Delete.old:K.columns[]:t.length": Described("Int32", "Length of the value, in bytes."),
    "Delete.old:K.columns[]:t.data": Described("Byten", "The value in text format, in the client's encoding."),
    "Delete.old:K.columns[]:b.length": Described("Int32", "Length of the value, in bytes."),
    "Delete.old:K.columns[]:b.data": Described("Byten", "The value in binary format."),
    "Delete.old:O.column_count": Described("Int16", "Number of columns that follow."),
    "Delete.old:O.columns": Described("repeat_1", "One value."),
    "Delete.old:O.columns[]": Described(
        "Byte1",
        "What is sent of the value.",
        values={
            "n": "NULL.",
            "u": "An unchanged TOASTed value, which is not sent.",
            "t": "The value as text, by its type's output function.",
            "b": "The value as binary, by its type's send function; under the option binary.",
        },
    ),
    "Delete.old:O.columns[]:t.length": Described("Int32", "Length of the value, in bytes."),
    "Delete.old:O.columns[]:t.data": Described("Byten", "The value in text format, in the client's encoding."),
    "Delete.old:O.columns[]:b.length": Described("Int32", "Length of the value, in bytes."),
    "Delete.old:O.columns[]:b.data": Described("Byten", "The value in binary format."),
    "Truncate": Described("Truncate", "Tables emptied by one TRUNCATE."),
    "Truncate.tag": Described("Byte1('T')", "Marks a Truncate."),
    "Truncate.xid": Described(
        "Int32 (TransactionId)", "Transaction or subtransaction ID, present only inside a stream."
    ),
    "Truncate.relation_count": Described("Int32", "Number of tables that follow."),
    "Truncate.options": Described(
        "Int8", "Bit 1 for CASCADE, bit 2 for RESTART IDENTITY.", bits={1: "cascade", 2: "restart identity"}
    ),
    "Truncate.relation_oids": Described("repeat_1", "One emptied table."),
    "Truncate.relation_oids[]": Described("Int32 (Oid)", "OID of a table that a Relation has described."),
    "StreamStart": Described("Stream Start", "Opens one segment of a transaction that is still running."),
    "StreamStart.tag": Described("Byte1('S')", "Marks a Stream Start."),
    "StreamStart.xid": Described("Int32 (TransactionId)", "Top-level transaction ID."),
    "StreamStart.first_segment": Described(
        "Int8",
        "1 for the transaction's first segment and 0 for the others.",
        values={0: "later segment", 1: "first segment"},
    ),
    "StreamStop": Described("Stream Stop", "Ends a segment; others may follow."),
    "StreamStop.tag": Described("Byte1('E')", "Marks a Stream Stop."),
    "StreamCommit": Described("Stream Commit", "Ends a streamed transaction; its changes now count."),
    "StreamCommit.tag": Described("Byte1('c')", "Marks a Stream Commit."),
    "StreamCommit.xid": Described("Int32 (TransactionId)", "Top-level transaction ID."),
    "StreamCommit.flags": Described("Int8(0)", "Reserved."),
    "StreamCommit.commit_lsn": Described("Int64 (XLogRecPtr)", "LSN at which the commit record starts."),
    "StreamCommit.end_lsn": Described("Int64 (XLogRecPtr)", "LSN after the commit record: the position to confirm."),
    "StreamCommit.commit_time": Described(
        "Int64 (TimestampTz)", "Time of the commit, in microseconds since 2000-01-01 UTC."
    ),
    "StreamAbort": Described("Stream Abort", "Takes back a streamed transaction or one of its subtransactions."),
    "StreamAbort.tag": Described("Byte1('A')", "Marks a Stream Abort."),
    "StreamAbort.xid": Described("Int32 (TransactionId)", "Top-level transaction ID."),
    "StreamAbort.subxid": Described(
        "Int32 (TransactionId)", "ID of what is taken back: a subtransaction, or the top-level transaction itself."
    ),
    "StreamAbort.abort_lsn": Described(
        "Int64 (XLogRecPtr)", "LSN after the abort record, 0/0 for a transaction lost in a crash."
    ),
    "StreamAbort.abort_time": Described(
        "Int64 (TimestampTz)", "Time of the abort, in microseconds since 2000-01-01 UTC."
    ),
    "BeginPrepare": Described("Begin Prepare", "Opens a transaction that has been prepared; its changes follow."),
    "BeginPrepare.tag": Described("Byte1('b')", "Marks a Begin Prepare."),
    "BeginPrepare.prepare_lsn": Described("Int64 (XLogRecPtr)", "LSN at which the prepare record starts."),
    "BeginPrepare.end_lsn": Described("Int64 (XLogRecPtr)", "LSN after the prepare record."),
    "BeginPrepare.prepare_time": Described(
        "Int64 (TimestampTz)", "Time of the prepare, in microseconds since 2000-01-01 UTC."
    ),
    "BeginPrepare.xid": Described("Int32 (TransactionId)", "Transaction ID."),
    "BeginPrepare.gid": Described("String", "Name given in PREPARE TRANSACTION."),
    "Prepare": Described(
        "Prepare", "Ends the changes of a prepared transaction; without any, PostgreSQL 18 sends no Begin Prepare."
    ),
    "Prepare.tag": Described("Byte1('P')", "Marks a Prepare."),
    "Prepare.flags": Described("Int8(0)", "Reserved."),
    "Prepare.prepare_lsn": Described("Int64 (XLogRecPtr)", "LSN at which the prepare record starts."),
    "Prepare.end_lsn": Described("Int64 (XLogRecPtr)", "LSN after the prepare record: the position to confirm."),
    "Prepare.prepare_time": Described(
        "Int64 (TimestampTz)", "Time of the prepare, in microseconds since 2000-01-01 UTC."
    ),
    "Prepare.xid": Described("Int32 (TransactionId)", "Transaction ID."),
    "Prepare.gid": Described("String", "Name given in PREPARE TRANSACTION."),
    "CommitPrepared": Described("Commit Prepared", "Commits a transaction that was prepared earlier."),
    "CommitPrepared.tag": Described("Byte1('K')", "Marks a Commit Prepared."),
    "CommitPrepared.flags": Described("Int8(0)", "Reserved."),
    "CommitPrepared.commit_lsn": Described("Int64 (XLogRecPtr)", "LSN at which the commit record starts."),
    "CommitPrepared.end_lsn": Described("Int64 (XLogRecPtr)", "LSN after the commit record: the position to confirm."),
    "CommitPrepared.commit_time": Described(
        "Int64 (TimestampTz)", "Time of the commit, in microseconds since 2000-01-01 UTC."
    ),
    "CommitPrepared.xid": Described("Int32 (TransactionId)", "Transaction ID."),
    "CommitPrepared.gid": Described("String", "Name given in PREPARE TRANSACTION."),
    "RollbackPrepared": Described("Rollback Prepared", "Takes back a transaction that was prepared earlier."),
    "RollbackPrepared.tag": Described("Byte1('r')", "Marks a Rollback Prepared."),
    "RollbackPrepared.flags": Described("Int8(0)", "Reserved."),
    "RollbackPrepared.prepare_end_lsn": Described(
        "Int64 (XLogRecPtr)", "LSN after the prepare record, which tells whether that prepare was received."
    ),
    "RollbackPrepared.rollback_end_lsn": Described(
        "Int64 (XLogRecPtr)", "LSN after the rollback record: the position to confirm."
    ),
    "RollbackPrepared.prepare_time": Described(
        "Int64 (TimestampTz)", "Time of the prepare, in microseconds since 2000-01-01 UTC."
    ),
    "RollbackPrepared.rollback_time": Described(
        "Int64 (TimestampTz)", "Time of the rollback, in microseconds since 2000-01-01 UTC."
    ),
    "RollbackPrepared.xid": Described("Int32 (TransactionId)", "Transaction ID."),
    "RollbackPrepared.gid": Described("String", "Name given in PREPARE TRANSACTION."),
    "StreamPrepare": Described("Stream Prepare", "Ends a streamed transaction that has been prepared."),
    "StreamPrepare.tag": Described("Byte1('p')", "Marks a Stream Prepare."),
    "StreamPrepare.flags": Described("Int8(0)", "Reserved."),
    "StreamPrepare.prepare_lsn": Described("Int64 (XLogRecPtr)", "LSN at which the prepare record starts."),
    "StreamPrepare.end_lsn": Described("Int64 (XLogRecPtr)", "LSN after the prepare record: the position to confirm."),
    "StreamPrepare.prepare_time": Described(
        "Int64 (TimestampTz)", "Time of the prepare, in microseconds since 2000-01-01 UTC."
    ),
    "StreamPrepare.xid": Described("Int32 (TransactionId)", "Top-level transaction ID."),
    "StreamPrepare.gid": Described("String", "Name given in PREPARE TRANSACTION."),
}
"""The rows by key, in wire order."""
