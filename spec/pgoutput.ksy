# Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.
meta:
  id: pgoutput
  title: Logical replication messages
  ks-version: '0.11'
  endian: be
doc: 'One message. Source: PostgreSQL''s documentation, protocol-logicalrep-message-formats.'
params:
- id: proto_version
  type: u4
  doc: The option proto_version of START_REPLICATION.
- id: in_stream
  type: bool
  doc: 'A state: between Stream Start and Stream Stop.'
- id: parallel
  type: bool
  doc: The option streaming is set to 'parallel'.
seq:
- id: tag
  type: u1
  enum: tag
  valid:
    in-enum: true
- id: body
  type:
    switch-on: tag
    cases:
      tag::begin: begin
      tag::message: message(proto_version, in_stream)
      tag::commit: commit
      tag::origin: origin
      tag::relation: relation(proto_version, in_stream)
      tag::type: type(proto_version, in_stream)
      tag::insert: insert(proto_version, in_stream)
      tag::update: update(proto_version, in_stream)
      tag::delete: delete(proto_version, in_stream)
      tag::truncate: truncate(proto_version, in_stream)
      tag::stream_start: stream_start(proto_version)
      tag::stream_stop: stream_stop(proto_version)
      tag::stream_commit: stream_commit(proto_version)
      tag::stream_abort: stream_abort(proto_version, parallel)
      tag::begin_prepare: begin_prepare
      tag::prepare: prepare
      tag::commit_prepared: commit_prepared
      tag::rollback_prepared: rollback_prepared
      tag::stream_prepare: stream_prepare
- id: end
  size: 0
  valid:
    expr: _io.eof
  doc: Nothing follows.
types:
  text:
    doc: Text that ends with a NUL.
    to-string: text
    seq:
    - id: raw
      terminator: 0
      doc: Its bytes; PostgreSQL does not promise that they are UTF-8.
    instances:
      text:
        value: raw.to_s("UTF-8")
  begin:
    doc: Opens a transaction that has committed; its changes follow.
    seq:
    - id: final_lsn
      type: u8
      doc: LSN of the commit record, the same as Commit's commit_lsn.
    - id: commit_time
      type: s8
      doc: Time of the commit, in microseconds since 2000-01-01 UTC.
    - id: xid
      type: u4
      doc: Transaction ID.
  message:
    doc: A message written by pg_logical_emit_message(), sent when the option messages is on.
    params:
    - id: proto_version
      type: u4
      doc: The option proto_version of START_REPLICATION.
    - id: in_stream
      type: bool
      doc: 'A state: between Stream Start and Stream Stop.'
    seq:
    - id: xid
      type: u4
      if: proto_version >= 2 and in_stream
      doc: Top-level transaction ID, present only inside a stream.
    - id: flags
      type: u1
      valid:
        expr: (_ & 0xfe) == 0
      doc: Bit 1 is set when the message belongs to a transaction.
    - id: lsn
      type: u8
      doc: LSN of the message.
    - id: prefix
      type: text
      doc: Prefix given by the writer.
    - id: content_length
      type: u4
      doc: Length of the content, in bytes.
    - id: content
      size: content_length
      doc: Content given by the writer, never converted to the client's encoding.
    instances:
      flags_transactional:
        value: (flags & 1) != 0
  commit:
    doc: Ends a transaction.
    seq:
    - id: flags
      contents:
      - 0
      doc: Reserved.
    - id: commit_lsn
      type: u8
      doc: LSN at which the commit record starts.
    - id: end_lsn
      type: u8
      doc: 'LSN after the commit record: the position to confirm.'
    - id: commit_time
      type: s8
      doc: Time of the commit, in microseconds since 2000-01-01 UTC.
  origin:
    doc: Names the replication origin of the transaction that has just begun.
    seq:
    - id: origin_lsn
      type: u8
      doc: LSN of the transaction's commit on its origin, 0/0 inside a stream.
    - id: name
      type: text
      doc: Name of the origin.
  relation_column:
    doc: One published column of the table.
    seq:
    - id: flags
      type: u1
      valid:
        expr: (_ & 0xfe) == 0
      doc: Bit 1 is set when the column is part of the replica identity.
    - id: name
      type: text
      doc: Name of the column.
    - id: type_oid
      type: u4
      doc: OID of the column's type.
    - id: type_modifier
      type: s4
      doc: Type modifier, as atttypmod in pg_attribute; -1 for none.
    instances:
      flags_key:
        value: (flags & 1) != 0
  relation:
    doc: Describes a table before its first change.
    params:
    - id: proto_version
      type: u4
      doc: The option proto_version of START_REPLICATION.
    - id: in_stream
      type: bool
      doc: 'A state: between Stream Start and Stream Stop.'
    seq:
    - id: xid
      type: u4
      if: proto_version >= 2 and in_stream
      doc: Transaction or subtransaction ID, present only inside a stream.
    - id: relation_oid
      type: u4
      doc: OID of the table.
    - id: namespace_field
      type: text
      doc: Schema of the table, empty for pg_catalog.
    - id: name
      type: text
      doc: Name of the table.
    - id: replica_identity
      type: u1
      enum: relation_replica_identity
      valid:
        in-enum: true
      doc: Replica identity setting, as relreplident in pg_class.
    - id: column_count
      type: u2
      doc: Number of columns that follow.
    - id: columns
      type: relation_column
      repeat: expr
      repeat-expr: column_count
      doc: One published column of the table.
  type:
    doc: Names a type that is not built in, before the Relation that uses it.
    params:
    - id: proto_version
      type: u4
      doc: The option proto_version of START_REPLICATION.
    - id: in_stream
      type: bool
      doc: 'A state: between Stream Start and Stream Stop.'
    seq:
    - id: xid
      type: u4
      if: proto_version >= 2 and in_stream
      doc: Transaction or subtransaction ID, present only inside a stream.
    - id: type_oid
      type: u4
      doc: OID of the type.
    - id: namespace_field
      type: text
      doc: Schema of the type, empty for pg_catalog.
    - id: name
      type: text
      doc: Name of the type; for a domain, of its base type.
  insert:
    doc: A new row.
    params:
    - id: proto_version
      type: u4
      doc: The option proto_version of START_REPLICATION.
    - id: in_stream
      type: bool
      doc: 'A state: between Stream Start and Stream Stop.'
    seq:
    - id: xid
      type: u4
      if: proto_version >= 2 and in_stream
      doc: Transaction or subtransaction ID, present only inside a stream.
    - id: relation_oid
      type: u4
      doc: OID of a table that a Relation has described.
    - id: new_tag
      contents:
      - 78
      doc: Announces the new row.
    - id: new_field
      type: tuple_data
      doc: Values of the new row, in the order of the Relation's columns.
  update:
    doc: A changed row.
    params:
    - id: proto_version
      type: u4
      doc: The option proto_version of START_REPLICATION.
    - id: in_stream
      type: bool
      doc: 'A state: between Stream Start and Stream Stop.'
    seq:
    - id: xid
      type: u4
      if: proto_version >= 2 and in_stream
      doc: Transaction or subtransaction ID, present only inside a stream.
    - id: relation_oid
      type: u4
      doc: OID of a table that a Relation has described.
    - id: old_kind
      type: u1
      enum: update_old_kind
      valid:
        in-enum: true
      doc: 'The row before the change: the whole row, or its key where that changed or is TOASTed, or nothing.'
    - id: old
      type:
        switch-on: old_kind
        cases:
          update_old_kind::key: tuple_data
          update_old_kind::row: tuple_data
    - id: new_tag
      contents:
      - 78
      if: old_kind != update_old_kind::new_tag
      doc: Announces the new row.
    - id: new_field
      type: tuple_data
      doc: Values of the new row, in the order of the Relation's columns.
  delete:
    doc: A removed row.
    params:
    - id: proto_version
      type: u4
      doc: The option proto_version of START_REPLICATION.
    - id: in_stream
      type: bool
      doc: 'A state: between Stream Start and Stream Stop.'
    seq:
    - id: xid
      type: u4
      if: proto_version >= 2 and in_stream
      doc: Transaction or subtransaction ID, present only inside a stream.
    - id: relation_oid
      type: u4
      doc: OID of a table that a Relation has described.
    - id: old_kind
      type: u1
      enum: delete_old_kind
      valid:
        in-enum: true
      doc: 'The removed row: whole, or its key.'
    - id: old
      type:
        switch-on: old_kind
        cases:
          delete_old_kind::key: tuple_data
          delete_old_kind::row: tuple_data
  truncate:
    doc: Tables emptied by one TRUNCATE.
    params:
    - id: proto_version
      type: u4
      doc: The option proto_version of START_REPLICATION.
    - id: in_stream
      type: bool
      doc: 'A state: between Stream Start and Stream Stop.'
    seq:
    - id: xid
      type: u4
      if: proto_version >= 2 and in_stream
      doc: Transaction or subtransaction ID, present only inside a stream.
    - id: relation_count
      type: u4
      doc: Number of tables that follow.
    - id: options
      type: u1
      valid:
        expr: (_ & 0xfc) == 0
      doc: Bit 1 for CASCADE, bit 2 for RESTART IDENTITY.
    - id: relation_oids
      type: u4
      repeat: expr
      repeat-expr: relation_count
      doc: One emptied table.
    instances:
      options_cascade:
        value: (options & 1) != 0
      options_restart_identity:
        value: (options & 2) != 0
  stream_start:
    doc: Opens one segment of a transaction that is still running.
    params:
    - id: proto_version
      type: u4
      doc: The option proto_version of START_REPLICATION.
    seq:
    - id: version
      size: 0
      valid:
        expr: proto_version >= 2
      doc: Protocol version 2 and newer.
    - id: xid
      type: u4
      doc: Top-level transaction ID.
    - id: first_segment
      type: u1
      enum: stream_start_first_segment
      valid:
        in-enum: true
      doc: 1 for the transaction's first segment and 0 for the others.
  stream_stop:
    doc: Ends a segment; others may follow.
    params:
    - id: proto_version
      type: u4
      doc: The option proto_version of START_REPLICATION.
    seq:
    - id: version
      size: 0
      valid:
        expr: proto_version >= 2
      doc: Protocol version 2 and newer.
  stream_commit:
    doc: Commits a streamed transaction.
    params:
    - id: proto_version
      type: u4
      doc: The option proto_version of START_REPLICATION.
    seq:
    - id: version
      size: 0
      valid:
        expr: proto_version >= 2
      doc: Protocol version 2 and newer.
    - id: xid
      type: u4
      doc: Top-level transaction ID.
    - id: flags
      contents:
      - 0
      doc: Reserved.
    - id: commit_lsn
      type: u8
      doc: LSN at which the commit record starts.
    - id: end_lsn
      type: u8
      doc: 'LSN after the commit record: the position to confirm.'
    - id: commit_time
      type: s8
      doc: Time of the commit, in microseconds since 2000-01-01 UTC.
  stream_abort:
    doc: Rolls back a streamed transaction or one of its subtransactions.
    params:
    - id: proto_version
      type: u4
      doc: The option proto_version of START_REPLICATION.
    - id: parallel
      type: bool
      doc: The option streaming is set to 'parallel'.
    seq:
    - id: xid
      type: u4
      doc: Top-level transaction ID.
    - id: subxid
      type: u4
      doc: 'ID of the transaction that is rolled back: a subtransaction, or the top-level transaction itself.'
    - id: abort_lsn
      type: u8
      if: proto_version >= 4 and parallel
      doc: LSN after the abort record, 0/0 for a transaction lost in a crash.
    - id: abort_time
      type: s8
      if: proto_version >= 4 and parallel
      doc: Time of the abort, in microseconds since 2000-01-01 UTC.
  begin_prepare:
    doc: Opens a transaction that has been prepared; its changes follow.
    seq:
    - id: prepare_lsn
      type: u8
      doc: LSN at which the prepare record starts.
    - id: end_lsn
      type: u8
      doc: LSN after the prepare record.
    - id: prepare_time
      type: s8
      doc: Time of the prepare, in microseconds since 2000-01-01 UTC.
    - id: xid
      type: u4
      doc: Transaction ID.
    - id: gid
      type: text
      doc: Name given in PREPARE TRANSACTION.
  prepare:
    doc: Ends the changes of a prepared transaction; without any, PostgreSQL 18 sends no Begin Prepare.
    seq:
    - id: flags
      contents:
      - 0
      doc: Reserved.
    - id: prepare_lsn
      type: u8
      doc: LSN at which the prepare record starts.
    - id: end_lsn
      type: u8
      doc: 'LSN after the prepare record: the position to confirm.'
    - id: prepare_time
      type: s8
      doc: Time of the prepare, in microseconds since 2000-01-01 UTC.
    - id: xid
      type: u4
      doc: Transaction ID.
    - id: gid
      type: text
      doc: Name given in PREPARE TRANSACTION.
  commit_prepared:
    doc: Commits a transaction that was prepared earlier.
    seq:
    - id: flags
      contents:
      - 0
      doc: Reserved.
    - id: commit_lsn
      type: u8
      doc: LSN at which the commit record starts.
    - id: end_lsn
      type: u8
      doc: 'LSN after the commit record: the position to confirm.'
    - id: commit_time
      type: s8
      doc: Time of the commit, in microseconds since 2000-01-01 UTC.
    - id: xid
      type: u4
      doc: Transaction ID.
    - id: gid
      type: text
      doc: Name given in PREPARE TRANSACTION.
  rollback_prepared:
    doc: Rolls back a transaction that was prepared earlier.
    seq:
    - id: flags
      contents:
      - 0
      doc: Reserved.
    - id: prepare_end_lsn
      type: u8
      doc: LSN after the prepare record, which tells whether that prepare was received.
    - id: rollback_end_lsn
      type: u8
      doc: 'LSN after the rollback record: the position to confirm.'
    - id: prepare_time
      type: s8
      doc: Time of the prepare, in microseconds since 2000-01-01 UTC.
    - id: rollback_time
      type: s8
      doc: Time of the rollback, in microseconds since 2000-01-01 UTC.
    - id: xid
      type: u4
      doc: Transaction ID.
    - id: gid
      type: text
      doc: Name given in PREPARE TRANSACTION.
  stream_prepare:
    doc: Ends a streamed transaction that has been prepared.
    seq:
    - id: flags
      contents:
      - 0
      doc: Reserved.
    - id: prepare_lsn
      type: u8
      doc: LSN at which the prepare record starts.
    - id: end_lsn
      type: u8
      doc: 'LSN after the prepare record: the position to confirm.'
    - id: prepare_time
      type: s8
      doc: Time of the prepare, in microseconds since 2000-01-01 UTC.
    - id: xid
      type: u4
      doc: Top-level transaction ID.
    - id: gid
      type: text
      doc: Name given in PREPARE TRANSACTION.
  tuple_data_columns_item_text:
    doc: The value as text, by its type's output function.
    seq:
    - id: length
      type: u4
      doc: Length of the value, in bytes.
    - id: data
      size: length
      doc: The value in text format, in the client's encoding.
  tuple_data_columns_item_binary:
    doc: The value as binary, by its type's send function; under the option binary.
    seq:
    - id: length
      type: u4
      doc: Length of the value, in bytes.
    - id: data
      size: length
      doc: The value in binary format.
  tuple_data_columns_item:
    doc: One value.
    seq:
    - id: value_kind
      type: u1
      enum: tuple_data_columns_item_value_kind
      valid:
        in-enum: true
      doc: The format of the value.
    - id: value
      type:
        switch-on: value_kind
        cases:
          tuple_data_columns_item_value_kind::text: tuple_data_columns_item_text
          tuple_data_columns_item_value_kind::binary: tuple_data_columns_item_binary
  tuple_data:
    doc: The values of one row, or of its key.
    seq:
    - id: column_count
      type: u2
      doc: Number of columns that follow.
    - id: columns
      type: tuple_data_columns_item
      repeat: expr
      repeat-expr: column_count
      doc: One value.
enums:
  relation_replica_identity:
    100: default
    110: nothing
    102: full
    105: index
  update_old_kind:
    75:
      id: key
      doc: The old key; columns outside the key are null.
    79:
      id: row
      doc: The whole old row, under REPLICA IDENTITY FULL.
    78:
      id: new_tag
      doc: 'None of them: this is the next field.'
  delete_old_kind:
    75:
      id: key
      doc: The old key; columns outside the key are null.
    79:
      id: row
      doc: The whole old row, under REPLICA IDENTITY FULL.
  stream_start_first_segment:
    0: later_segment
    1: first_segment
  tuple_data_columns_item_value_kind:
    110:
      id: 'null'
      doc: NULL.
    117:
      id: unchanged
      doc: An unchanged TOASTed value, which is not sent.
    116:
      id: text
      doc: The value as text, by its type's output function.
    98:
      id: binary
      doc: The value as binary, by its type's send function; under the option binary.
  tag:
    66:
      id: begin
      doc: Opens a transaction that has committed; its changes follow.
    77:
      id: message
      doc: A message written by pg_logical_emit_message(), sent when the option messages is on.
    67:
      id: commit
      doc: Ends a transaction.
    79:
      id: origin
      doc: Names the replication origin of the transaction that has just begun.
    82:
      id: relation
      doc: Describes a table before its first change.
    89:
      id: type
      doc: Names a type that is not built in, before the Relation that uses it.
    73:
      id: insert
      doc: A new row.
    85:
      id: update
      doc: A changed row.
    68:
      id: delete
      doc: A removed row.
    84:
      id: truncate
      doc: Tables emptied by one TRUNCATE.
    83:
      id: stream_start
      doc: Opens one segment of a transaction that is still running.
    69:
      id: stream_stop
      doc: Ends a segment; others may follow.
    99:
      id: stream_commit
      doc: Commits a streamed transaction.
    65:
      id: stream_abort
      doc: Rolls back a streamed transaction or one of its subtransactions.
    98:
      id: begin_prepare
      doc: Opens a transaction that has been prepared; its changes follow.
    80:
      id: prepare
      doc: Ends the changes of a prepared transaction; without any, PostgreSQL 18 sends no Begin Prepare.
    75:
      id: commit_prepared
      doc: Commits a transaction that was prepared earlier.
    114:
      id: rollback_prepared
      doc: Rolls back a transaction that was prepared earlier.
    112:
      id: stream_prepare
      doc: Ends a streamed transaction that has been prepared.
