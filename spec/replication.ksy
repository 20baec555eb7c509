# Generated from spec/replication.yaml by: python -m tools.generate. Do not edit.
meta:
  id: replication
  title: Streaming replication envelope
  ks-version: '0.11'
  endian: be
doc: 'One message. Source: PostgreSQL''s documentation, protocol-replication.'
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
      tag::x_log_data: x_log_data
      tag::primary_keepalive: primary_keepalive
      tag::primary_status_update: primary_status_update
      tag::standby_status_update: standby_status_update
      tag::hot_standby_feedback: hot_standby_feedback
      tag::primary_status_request: primary_status_request
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
  x_log_data:
    doc: A piece of WAL; in logical replication, one message. PostgreSQL 19 calls it WALData.
    seq:
    - id: wal_start
      type: u8
      doc: LSN of the message, 0/0 for Relation, Type and what an Origin follows.
    - id: wal_end
      type: u8
      doc: In logical replication, the same as wal_start.
    - id: send_time
      type: s8
      doc: The server's clock when it sent this, in microseconds since 2000-01-01 UTC.
    - id: data
      size-eos: true
      doc: The payload, to the end.
  primary_keepalive:
    doc: Reports how far the server has read its WAL.
    seq:
    - id: wal_end
      type: u8
      doc: End of the WAL that the server has sent.
    - id: send_time
      type: s8
      doc: The server's clock when it sent this, in microseconds since 2000-01-01 UTC.
    - id: reply_requested
      type: u1
      enum: primary_keepalive_reply_requested
      valid:
        in-enum: true
      doc: 1 asks for a status update at once.
  primary_status_update:
    doc: 'Answers a status request: how far the primary has come.'
    seq:
    - id: lsn
      type: u8
      doc: Latest WAL position of the primary.
    - id: oldest_full_xid
      type: u8
      doc: Oldest transaction that is committing on the primary.
    - id: next_full_xid
      type: u8
      doc: Next transaction ID to be assigned.
    - id: send_time
      type: s8
      doc: The server's clock when it sent this, in microseconds since 2000-01-01 UTC.
  standby_status_update:
    doc: Confirms what the client has received and made durable.
    seq:
    - id: write_lsn
      type: u8
      doc: LSN after the last byte received.
    - id: flush_lsn
      type: u8
      doc: LSN after the last byte made durable; only this moves the slot.
    - id: apply_lsn
      type: u8
      doc: LSN after the last byte applied.
    - id: send_time
      type: s8
      doc: The client's clock when it sent this, in microseconds since 2000-01-01 UTC.
    - id: reply_requested
      type: u1
      enum: standby_status_update_reply_requested
      valid:
        in-enum: true
      doc: 1 asks the server for a keepalive at once.
  hot_standby_feedback:
    doc: Reports which transactions a standby still needs.
    seq:
    - id: send_time
      type: s8
      doc: The client's clock when it sent this, in microseconds since 2000-01-01 UTC.
    - id: xmin
      type: u4
      doc: Oldest transaction the standby needs, 0 when it needs none.
    - id: xmin_epoch
      type: u4
      doc: Epoch of xmin.
    - id: catalog_xmin
      type: u4
      doc: Oldest transaction its slots need in catalogs, 0 when they need none.
    - id: catalog_xmin_epoch
      type: u4
      doc: Epoch of catalog_xmin.
  primary_status_request:
    doc: Asks the primary for a status update.
    seq:
    - id: send_time
      type: s8
      doc: The client's clock when it sent this, in microseconds since 2000-01-01 UTC.
enums:
  primary_keepalive_reply_requested:
    0: no_reply_is_needed
    1: reply_at_once
  standby_status_update_reply_requested:
    0: no_reply_is_needed
    1: reply_at_once
  tag:
    119:
      id: x_log_data
      doc: A piece of WAL; in logical replication, one message. PostgreSQL 19 calls it WALData.
    107:
      id: primary_keepalive
      doc: Reports how far the server has read its WAL.
    115:
      id: primary_status_update
      doc: 'Answers a status request: how far the primary has come.'
    114:
      id: standby_status_update
      doc: Confirms what the client has received and made durable.
    104:
      id: hot_standby_feedback
      doc: Reports which transactions a standby still needs.
    112:
      id: primary_status_request
      doc: Asks the primary for a status update.
