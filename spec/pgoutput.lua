-- Generated from spec/pgoutput.yaml, replication.yaml and protocol.yaml by: python -m tools.generate. Do not edit.

-- A Wireshark dissector of PostgreSQL's logical replication: the frames in CopyData, and the messages of pgoutput in
-- them. spec/README.md says how to install it.

local FRAMES, MESSAGES, PARTS, STATES, OPTIONS, COPY_DATA, QUERY

FRAMES = {
  {
    tag = 119,
    name = "XLogData",
    class = "XLogData",
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks an XLogData.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 119,
      },
      {
        kind = "number",
        name = "wal_start",
        about = "LSN of the message, 0/0 for Relation, Type and what an Origin follows.",
        abbr = "pgoutput.wal_start",
        type = "lsn",
        size = 8,
      },
      {
        kind = "number",
        name = "wal_end",
        about = "In logical replication, the same as wal_start.",
        abbr = "pgoutput.wal_end",
        type = "lsn",
        size = 8,
      },
      {
        kind = "time",
        name = "send_time",
        about = "The server's clock when it sent this, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.send_time",
        size = 8,
      },
      {kind = "bytes", name = "data", about = "The payload, to the end.", abbr = "pgoutput.data"},
    },
  },
  {
    tag = 107,
    name = "Primary Keepalive",
    class = "PrimaryKeepalive",
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a keepalive.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 107,
      },
      {
        kind = "number",
        name = "wal_end",
        about = "End of the WAL that the server has sent.",
        abbr = "pgoutput.wal_end",
        type = "lsn",
        size = 8,
      },
      {
        kind = "time",
        name = "send_time",
        about = "The server's clock when it sent this, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.send_time",
        size = 8,
      },
      {
        kind = "number",
        name = "reply_requested",
        about = "1 asks for a status update at once.",
        abbr = "pgoutput.reply_requested",
        type = "uint8",
        size = 1,
        values = {[0] = "no reply is needed", [1] = "reply at once"},
      },
    },
  },
  {
    tag = 115,
    name = "Primary Status Update",
    class = "PrimaryStatusUpdate",
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a primary status update.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 115,
      },
      {
        kind = "number",
        name = "lsn",
        about = "Latest WAL position of the primary.",
        abbr = "pgoutput.lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "number",
        name = "oldest_full_xid",
        about = "Oldest transaction that is committing on the primary.",
        abbr = "pgoutput.oldest_full_xid",
        type = "uint64",
        size = 8,
      },
      {
        kind = "number",
        name = "next_full_xid",
        about = "Next transaction ID to be assigned.",
        abbr = "pgoutput.next_full_xid",
        type = "uint64",
        size = 8,
      },
      {
        kind = "time",
        name = "send_time",
        about = "The server's clock when it sent this, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.send_time",
        size = 8,
      },
    },
  },
  {
    tag = 114,
    name = "Standby Status Update",
    class = "StandbyStatusUpdate",
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a standby status update.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 114,
      },
      {
        kind = "number",
        name = "write_lsn",
        about = "LSN after the last byte received.",
        abbr = "pgoutput.write_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "number",
        name = "flush_lsn",
        about = "LSN after the last byte made durable; only this moves the slot.",
        abbr = "pgoutput.flush_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "number",
        name = "apply_lsn",
        about = "LSN after the last byte applied.",
        abbr = "pgoutput.apply_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "time",
        name = "send_time",
        about = "The client's clock when it sent this, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.send_time",
        size = 8,
      },
      {
        kind = "number",
        name = "reply_requested",
        about = "1 asks the server for a keepalive at once.",
        abbr = "pgoutput.reply_requested",
        type = "uint8",
        size = 1,
        values = {[0] = "no reply is needed", [1] = "reply at once"},
      },
    },
  },
  {
    tag = 104,
    name = "Hot Standby Feedback",
    class = "HotStandbyFeedback",
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a hot standby feedback.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 104,
      },
      {
        kind = "time",
        name = "send_time",
        about = "The client's clock when it sent this, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.send_time",
        size = 8,
      },
      {
        kind = "number",
        name = "xmin",
        about = "Oldest transaction the standby needs, 0 when it needs none.",
        abbr = "pgoutput.xmin",
        type = "uint32",
        size = 4,
      },
      {
        kind = "number",
        name = "xmin_epoch",
        about = "Epoch of xmin.",
        abbr = "pgoutput.xmin_epoch",
        type = "uint32",
        size = 4,
      },
      {
        kind = "number",
        name = "catalog_xmin",
        about = "Oldest transaction its slots need in catalogs, 0 when they need none.",
        abbr = "pgoutput.catalog_xmin",
        type = "uint32",
        size = 4,
      },
      {
        kind = "number",
        name = "catalog_xmin_epoch",
        about = "Epoch of catalog_xmin.",
        abbr = "pgoutput.catalog_xmin_epoch",
        type = "uint32",
        size = 4,
      },
    },
  },
  {
    tag = 112,
    name = "Primary Status Request",
    class = "PrimaryStatusRequest",
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a primary status request.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 112,
      },
      {
        kind = "time",
        name = "send_time",
        about = "The client's clock when it sent this, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.send_time",
        size = 8,
      },
    },
  },
}

MESSAGES = {
  {
    tag = 66,
    name = "Begin",
    class = "Begin",
    group = "begin",
    states = {"idle"},
    enters = "transaction",
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Begin.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 66,
      },
      {
        kind = "number",
        name = "final_lsn",
        about = "LSN of the commit record, the same as Commit's commit_lsn.",
        abbr = "pgoutput.final_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "time",
        name = "commit_time",
        about = "Time of the commit, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.commit_time",
        size = 8,
      },
      {kind = "number", name = "xid", about = "Transaction ID.", abbr = "pgoutput.xid", type = "uint32", size = 4},
    },
  },
  {
    tag = 77,
    name = "Message",
    class = "Message",
    states = {"idle", "transaction", "preparing", "stream"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Message.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 77,
      },
      {
        kind = "number",
        name = "xid",
        about = "Top-level transaction ID, present only inside a stream.",
        abbr = "pgoutput.xid",
        type = "uint32",
        size = 4,
        only = {is = "all", terms = {{is = "since", version = 2}, {is = "set", name = "in_stream"}}},
      },
      {
        kind = "number",
        name = "flags",
        about = "Bit 1 is set when the message belongs to a transaction.",
        abbr = "pgoutput.flags",
        type = "uint8",
        size = 1,
        bits = {{mask = 1, name = "transactional"}},
      },
      {kind = "number", name = "lsn", about = "LSN of the message.", abbr = "pgoutput.lsn", type = "lsn", size = 8},
      {kind = "string", name = "prefix", about = "Prefix given by the writer.", abbr = "pgoutput.prefix"},
      {
        kind = "number",
        name = "content_length",
        about = "Length of the content, in bytes.",
        abbr = "pgoutput.content_length",
        type = "uint32",
        size = 4,
      },
      {
        kind = "bytes",
        name = "content",
        about = "Content given by the writer, never converted to the client's encoding.",
        abbr = "pgoutput.content",
        length = "content_length",
      },
    },
  },
  {
    tag = 67,
    name = "Commit",
    class = "Commit",
    group = "end",
    states = {"transaction"},
    enters = "idle",
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Commit.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 67,
      },
      {
        kind = "number",
        name = "flags",
        about = "Reserved.",
        abbr = "pgoutput.flags",
        type = "uint8",
        size = 1,
        constant = 0,
      },
      {
        kind = "number",
        name = "commit_lsn",
        about = "LSN at which the commit record starts.",
        abbr = "pgoutput.commit_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "number",
        name = "end_lsn",
        about = "LSN after the commit record: the position to confirm.",
        abbr = "pgoutput.end_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "time",
        name = "commit_time",
        about = "Time of the commit, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.commit_time",
        size = 8,
      },
    },
  },
  {
    tag = 79,
    name = "Origin",
    class = "Origin",
    states = {"transaction", "preparing", "stream"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks an Origin.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 79,
      },
      {
        kind = "number",
        name = "origin_lsn",
        about = "LSN of the transaction's commit on its origin, 0/0 inside a stream.",
        abbr = "pgoutput.origin_lsn",
        type = "lsn",
        size = 8,
      },
      {kind = "string", name = "name", about = "Name of the origin.", abbr = "pgoutput.name"},
    },
  },
  {
    tag = 82,
    name = "Relation",
    class = "Relation",
    group = "description",
    states = {"transaction", "preparing", "stream"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Relation.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 82,
      },
      {
        kind = "number",
        name = "xid",
        about = "Transaction or subtransaction ID, present only inside a stream.",
        abbr = "pgoutput.xid",
        type = "uint32",
        size = 4,
        only = {is = "all", terms = {{is = "since", version = 2}, {is = "set", name = "in_stream"}}},
      },
      {
        kind = "number",
        name = "relation_oid",
        about = "OID of the table.",
        abbr = "pgoutput.relation_oid",
        type = "uint32",
        size = 4,
      },
      {
        kind = "string",
        name = "namespace",
        about = "Schema of the table, empty for pg_catalog.",
        abbr = "pgoutput.namespace",
      },
      {kind = "string", name = "name", about = "Name of the table.", abbr = "pgoutput.name"},
      {
        kind = "number",
        name = "replica_identity",
        about = "Replica identity setting, as relreplident in pg_class.",
        abbr = "pgoutput.replica_identity",
        type = "char",
        size = 1,
        values = {[100] = "default", [110] = "nothing", [102] = "full", [105] = "index"},
      },
      {
        kind = "number",
        name = "column_count",
        about = "Number of columns that follow.",
        abbr = "pgoutput.column_count",
        type = "uint16",
        size = 2,
      },
      {
        kind = "repeat",
        name = "columns",
        about = "One published column of the table.",
        count = "column_count",
        abbr = "pgoutput.columns",
        item = {
          elements = {
            {
              kind = "number",
              name = "flags",
              about = "Bit 1 is set when the column is part of the replica identity.",
              abbr = "pgoutput.flags",
              type = "uint8",
              size = 1,
              bits = {{mask = 1, name = "key"}},
            },
            {kind = "string", name = "name", about = "Name of the column.", abbr = "pgoutput.name"},
            {
              kind = "number",
              name = "type_oid",
              about = "OID of the column's type.",
              abbr = "pgoutput.type_oid",
              type = "uint32",
              size = 4,
            },
            {
              kind = "number",
              name = "type_modifier",
              about = "Type modifier, as atttypmod in pg_attribute; -1 for none.",
              abbr = "pgoutput.type_modifier",
              type = "int32",
              size = 4,
            },
          },
        },
      },
    },
  },
  {
    tag = 89,
    name = "Type",
    class = "Type",
    group = "description",
    states = {"transaction", "preparing", "stream"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Type.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 89,
      },
      {
        kind = "number",
        name = "xid",
        about = "Transaction or subtransaction ID, present only inside a stream.",
        abbr = "pgoutput.xid",
        type = "uint32",
        size = 4,
        only = {is = "all", terms = {{is = "since", version = 2}, {is = "set", name = "in_stream"}}},
      },
      {
        kind = "number",
        name = "type_oid",
        about = "OID of the type.",
        abbr = "pgoutput.type_oid",
        type = "uint32",
        size = 4,
      },
      {
        kind = "string",
        name = "namespace",
        about = "Schema of the type, empty for pg_catalog.",
        abbr = "pgoutput.namespace",
      },
      {
        kind = "string",
        name = "name",
        about = "Name of the type; for a domain, of its base type.",
        abbr = "pgoutput.name",
      },
    },
  },
  {
    tag = 73,
    name = "Insert",
    class = "Insert",
    group = "change",
    states = {"transaction", "preparing", "stream"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks an Insert.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 73,
      },
      {
        kind = "number",
        name = "xid",
        about = "Transaction or subtransaction ID, present only inside a stream.",
        abbr = "pgoutput.xid",
        type = "uint32",
        size = 4,
        only = {is = "all", terms = {{is = "since", version = 2}, {is = "set", name = "in_stream"}}},
      },
      {
        kind = "number",
        name = "relation_oid",
        about = "OID of a table that a Relation has described.",
        abbr = "pgoutput.relation_oid",
        type = "uint32",
        size = 4,
      },
      {
        kind = "number",
        name = "new_tag",
        about = "Announces the new row.",
        abbr = "pgoutput.new_tag",
        type = "char",
        size = 1,
        constant = 78,
      },
      {
        kind = "part",
        name = "new",
        about = "Values of the new row, in the order of the Relation's columns.",
        part = "TupleData",
        abbr = "pgoutput.new",
      },
    },
  },
  {
    tag = 85,
    name = "Update",
    class = "Update",
    group = "change",
    states = {"transaction", "preparing", "stream"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks an Update.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 85,
      },
      {
        kind = "number",
        name = "xid",
        about = "Transaction or subtransaction ID, present only inside a stream.",
        abbr = "pgoutput.xid",
        type = "uint32",
        size = 4,
        only = {is = "all", terms = {{is = "since", version = 2}, {is = "set", name = "in_stream"}}},
      },
      {
        kind = "number",
        name = "relation_oid",
        about = "OID of a table that a Relation has described.",
        abbr = "pgoutput.relation_oid",
        type = "uint32",
        size = 4,
      },
      {
        kind = "choice",
        name = "old",
        about = "The row before the change: the whole row, or its key where that changed or is TOASTed, or nothing.",
        tag_name = "old_kind",
        tag_abbr = "pgoutput.old_kind",
        tag_type = "char",
        alternatives = {
          {tag = 75, name = "key", about = "The old key; columns outside the key are null.", part = "TupleData"},
          {tag = 79, name = "row", about = "The whole old row, under REPLICA IDENTITY FULL.", part = "TupleData"},
        },
        abbr = "pgoutput.old",
        before = 78,
      },
      {
        kind = "number",
        name = "new_tag",
        about = "Announces the new row.",
        abbr = "pgoutput.new_tag",
        type = "char",
        size = 1,
        constant = 78,
      },
      {
        kind = "part",
        name = "new",
        about = "Values of the new row, in the order of the Relation's columns.",
        part = "TupleData",
        abbr = "pgoutput.new",
      },
    },
  },
  {
    tag = 68,
    name = "Delete",
    class = "Delete",
    group = "change",
    states = {"transaction", "preparing", "stream"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Delete.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 68,
      },
      {
        kind = "number",
        name = "xid",
        about = "Transaction or subtransaction ID, present only inside a stream.",
        abbr = "pgoutput.xid",
        type = "uint32",
        size = 4,
        only = {is = "all", terms = {{is = "since", version = 2}, {is = "set", name = "in_stream"}}},
      },
      {
        kind = "number",
        name = "relation_oid",
        about = "OID of a table that a Relation has described.",
        abbr = "pgoutput.relation_oid",
        type = "uint32",
        size = 4,
      },
      {
        kind = "choice",
        name = "old",
        about = "The removed row: whole, or its key.",
        tag_name = "old_kind",
        tag_abbr = "pgoutput.old_kind",
        tag_type = "char",
        alternatives = {
          {tag = 75, name = "key", about = "The old key; columns outside the key are null.", part = "TupleData"},
          {tag = 79, name = "row", about = "The whole old row, under REPLICA IDENTITY FULL.", part = "TupleData"},
        },
        abbr = "pgoutput.old",
      },
    },
  },
  {
    tag = 84,
    name = "Truncate",
    class = "Truncate",
    group = "change",
    states = {"transaction", "preparing", "stream"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Truncate.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 84,
      },
      {
        kind = "number",
        name = "xid",
        about = "Transaction or subtransaction ID, present only inside a stream.",
        abbr = "pgoutput.xid",
        type = "uint32",
        size = 4,
        only = {is = "all", terms = {{is = "since", version = 2}, {is = "set", name = "in_stream"}}},
      },
      {
        kind = "number",
        name = "relation_count",
        about = "Number of tables that follow.",
        abbr = "pgoutput.relation_count",
        type = "uint32",
        size = 4,
      },
      {
        kind = "number",
        name = "options",
        about = "Bit 1 for CASCADE, bit 2 for RESTART IDENTITY.",
        abbr = "pgoutput.options",
        type = "uint8",
        size = 1,
        bits = {{mask = 1, name = "cascade"}, {mask = 2, name = "restart identity"}},
      },
      {
        kind = "repeat",
        name = "relation_oids",
        about = "One emptied table.",
        count = "relation_count",
        abbr = "pgoutput.relation_oids",
        item = {
          alone = true,
          elements = {
            {
              kind = "number",
              name = "relation_oid",
              about = "OID of a table that a Relation has described.",
              abbr = "pgoutput.relation_oid",
              type = "uint32",
              size = 4,
            },
          },
        },
      },
    },
  },
  {
    tag = 83,
    name = "Stream Start",
    class = "StreamStart",
    group = "begin",
    needs = 2,
    option = {name = "streaming", off = "off"},
    states = {"idle"},
    enters = "stream",
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Stream Start.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 83,
      },
      {
        kind = "number",
        name = "xid",
        about = "Top-level transaction ID.",
        abbr = "pgoutput.xid",
        type = "uint32",
        size = 4,
      },
      {
        kind = "number",
        name = "first_segment",
        about = "1 for the transaction's first segment and 0 for the others.",
        abbr = "pgoutput.first_segment",
        type = "uint8",
        size = 1,
        values = {[0] = "later segment", [1] = "first segment"},
      },
    },
  },
  {
    tag = 69,
    name = "Stream Stop",
    class = "StreamStop",
    group = "end",
    needs = 2,
    states = {"stream"},
    enters = "idle",
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Stream Stop.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 69,
      },
    },
  },
  {
    tag = 99,
    name = "Stream Commit",
    class = "StreamCommit",
    group = "end",
    needs = 2,
    states = {"idle"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Stream Commit.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 99,
      },
      {
        kind = "number",
        name = "xid",
        about = "Top-level transaction ID.",
        abbr = "pgoutput.xid",
        type = "uint32",
        size = 4,
      },
      {
        kind = "number",
        name = "flags",
        about = "Reserved.",
        abbr = "pgoutput.flags",
        type = "uint8",
        size = 1,
        constant = 0,
      },
      {
        kind = "number",
        name = "commit_lsn",
        about = "LSN at which the commit record starts.",
        abbr = "pgoutput.commit_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "number",
        name = "end_lsn",
        about = "LSN after the commit record: the position to confirm.",
        abbr = "pgoutput.end_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "time",
        name = "commit_time",
        about = "Time of the commit, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.commit_time",
        size = 8,
      },
    },
  },
  {
    tag = 65,
    name = "Stream Abort",
    class = "StreamAbort",
    group = "end",
    states = {"idle"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Stream Abort.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 65,
      },
      {
        kind = "number",
        name = "xid",
        about = "Top-level transaction ID.",
        abbr = "pgoutput.xid",
        type = "uint32",
        size = 4,
      },
      {
        kind = "number",
        name = "subxid",
        about = "ID of the transaction that is rolled back: a subtransaction, or the top-level transaction itself.",
        abbr = "pgoutput.subxid",
        type = "uint32",
        size = 4,
      },
      {
        kind = "number",
        name = "abort_lsn",
        about = "LSN after the abort record, 0/0 for a transaction lost in a crash.",
        abbr = "pgoutput.abort_lsn",
        type = "lsn",
        size = 8,
        only = {is = "all", terms = {{is = "since", version = 4}, {is = "set", name = "parallel"}}},
      },
      {
        kind = "time",
        name = "abort_time",
        about = "Time of the abort, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.abort_time",
        size = 8,
        only = {is = "all", terms = {{is = "since", version = 4}, {is = "set", name = "parallel"}}},
      },
    },
  },
  {
    tag = 98,
    name = "Begin Prepare",
    class = "BeginPrepare",
    group = "begin",
    states = {"idle"},
    enters = "preparing",
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Begin Prepare.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 98,
      },
      {
        kind = "number",
        name = "prepare_lsn",
        about = "LSN at which the prepare record starts.",
        abbr = "pgoutput.prepare_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "number",
        name = "end_lsn",
        about = "LSN after the prepare record.",
        abbr = "pgoutput.end_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "time",
        name = "prepare_time",
        about = "Time of the prepare, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.prepare_time",
        size = 8,
      },
      {kind = "number", name = "xid", about = "Transaction ID.", abbr = "pgoutput.xid", type = "uint32", size = 4},
      {kind = "string", name = "gid", about = "Name given in PREPARE TRANSACTION.", abbr = "pgoutput.gid"},
    },
  },
  {
    tag = 80,
    name = "Prepare",
    class = "Prepare",
    group = "end",
    states = {"idle", "preparing"},
    enters = "idle",
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Prepare.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 80,
      },
      {
        kind = "number",
        name = "flags",
        about = "Reserved.",
        abbr = "pgoutput.flags",
        type = "uint8",
        size = 1,
        constant = 0,
      },
      {
        kind = "number",
        name = "prepare_lsn",
        about = "LSN at which the prepare record starts.",
        abbr = "pgoutput.prepare_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "number",
        name = "end_lsn",
        about = "LSN after the prepare record: the position to confirm.",
        abbr = "pgoutput.end_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "time",
        name = "prepare_time",
        about = "Time of the prepare, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.prepare_time",
        size = 8,
      },
      {kind = "number", name = "xid", about = "Transaction ID.", abbr = "pgoutput.xid", type = "uint32", size = 4},
      {kind = "string", name = "gid", about = "Name given in PREPARE TRANSACTION.", abbr = "pgoutput.gid"},
    },
  },
  {
    tag = 75,
    name = "Commit Prepared",
    class = "CommitPrepared",
    group = "end",
    states = {"idle"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Commit Prepared.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 75,
      },
      {
        kind = "number",
        name = "flags",
        about = "Reserved.",
        abbr = "pgoutput.flags",
        type = "uint8",
        size = 1,
        constant = 0,
      },
      {
        kind = "number",
        name = "commit_lsn",
        about = "LSN at which the commit record starts.",
        abbr = "pgoutput.commit_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "number",
        name = "end_lsn",
        about = "LSN after the commit record: the position to confirm.",
        abbr = "pgoutput.end_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "time",
        name = "commit_time",
        about = "Time of the commit, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.commit_time",
        size = 8,
      },
      {kind = "number", name = "xid", about = "Transaction ID.", abbr = "pgoutput.xid", type = "uint32", size = 4},
      {kind = "string", name = "gid", about = "Name given in PREPARE TRANSACTION.", abbr = "pgoutput.gid"},
    },
  },
  {
    tag = 114,
    name = "Rollback Prepared",
    class = "RollbackPrepared",
    group = "end",
    states = {"idle"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Rollback Prepared.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 114,
      },
      {
        kind = "number",
        name = "flags",
        about = "Reserved.",
        abbr = "pgoutput.flags",
        type = "uint8",
        size = 1,
        constant = 0,
      },
      {
        kind = "number",
        name = "prepare_end_lsn",
        about = "LSN after the prepare record, which tells whether that prepare was received.",
        abbr = "pgoutput.prepare_end_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "number",
        name = "rollback_end_lsn",
        about = "LSN after the rollback record: the position to confirm.",
        abbr = "pgoutput.rollback_end_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "time",
        name = "prepare_time",
        about = "Time of the prepare, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.prepare_time",
        size = 8,
      },
      {
        kind = "time",
        name = "rollback_time",
        about = "Time of the rollback, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.rollback_time",
        size = 8,
      },
      {kind = "number", name = "xid", about = "Transaction ID.", abbr = "pgoutput.xid", type = "uint32", size = 4},
      {kind = "string", name = "gid", about = "Name given in PREPARE TRANSACTION.", abbr = "pgoutput.gid"},
    },
  },
  {
    tag = 112,
    name = "Stream Prepare",
    class = "StreamPrepare",
    group = "end",
    states = {"idle"},
    elements = {
      {
        kind = "number",
        name = "tag",
        about = "Marks a Stream Prepare.",
        abbr = "pgoutput.tag",
        type = "char",
        size = 1,
        constant = 112,
      },
      {
        kind = "number",
        name = "flags",
        about = "Reserved.",
        abbr = "pgoutput.flags",
        type = "uint8",
        size = 1,
        constant = 0,
      },
      {
        kind = "number",
        name = "prepare_lsn",
        about = "LSN at which the prepare record starts.",
        abbr = "pgoutput.prepare_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "number",
        name = "end_lsn",
        about = "LSN after the prepare record: the position to confirm.",
        abbr = "pgoutput.end_lsn",
        type = "lsn",
        size = 8,
      },
      {
        kind = "time",
        name = "prepare_time",
        about = "Time of the prepare, in microseconds since 2000-01-01 UTC.",
        abbr = "pgoutput.prepare_time",
        size = 8,
      },
      {
        kind = "number",
        name = "xid",
        about = "Top-level transaction ID.",
        abbr = "pgoutput.xid",
        type = "uint32",
        size = 4,
      },
      {kind = "string", name = "gid", about = "Name given in PREPARE TRANSACTION.", abbr = "pgoutput.gid"},
    },
  },
}

PARTS = {
  {
    name = "TupleData",
    elements = {
      {
        kind = "number",
        name = "column_count",
        about = "Number of columns that follow.",
        abbr = "pgoutput.column_count",
        type = "uint16",
        size = 2,
      },
      {
        kind = "repeat",
        name = "columns",
        about = "One value.",
        count = "column_count",
        abbr = "pgoutput.columns",
        item = {
          alone = true,
          elements = {
            {
              kind = "choice",
              name = "value",
              about = "The format of the value.",
              valued = true,
              tag_name = "value",
              tag_abbr = "pgoutput.value",
              tag_type = "char",
              alternatives = {
                {tag = 110, name = "null", about = "NULL."},
                {tag = 117, name = "unchanged", about = "An unchanged TOASTed value, which is not sent."},
                {
                  tag = 116,
                  name = "text",
                  about = "The value as text, by its type's output function.",
                  content = {
                    elements = {
                      {
                        kind = "number",
                        name = "length",
                        about = "Length of the value, in bytes.",
                        abbr = "pgoutput.length",
                        type = "uint32",
                        size = 4,
                      },
                      {
                        kind = "bytes",
                        name = "data",
                        about = "The value in text format, in the client's encoding.",
                        abbr = "pgoutput.data",
                        length = "length",
                      },
                    },
                  },
                },
                {
                  tag = 98,
                  name = "binary",
                  about = "The value as binary, by its type's send function; under the option binary.",
                  content = {
                    elements = {
                      {
                        kind = "number",
                        name = "length",
                        about = "Length of the value, in bytes.",
                        abbr = "pgoutput.length",
                        type = "uint32",
                        size = 4,
                      },
                      {
                        kind = "bytes",
                        name = "data",
                        about = "The value in binary format.",
                        abbr = "pgoutput.data",
                        length = "length",
                      },
                    },
                  },
                },
              },
              abbr = "pgoutput.value_content",
            },
          },
        },
      },
    },
  },
}

STATES = {
  {name = "idle", about = "Between transactions."},
  {name = "transaction", about = "Between Begin and Commit."},
  {name = "preparing", about = "Between Begin Prepare and Prepare."},
  {name = "stream", about = "Between Stream Start and Stream Stop.", sets = {"in_stream"}},
}

OPTIONS = {
  {name = "proto_version", type = "number", default = 1, newest = 4, about = "The protocol version."},
  {
    name = "streaming",
    default = "off",
    values = {{name = "off"}, {name = "on"}, {name = "parallel", sets = {"parallel"}}},
    about = "How transactions are sent that are still running.",
  },
}

COPY_DATA = {tag = 100, header = 5}

QUERY = {tag = 81, header = 5}

-- The fields that Wireshark knows: one for each place in a frame or message, with its name in filters.

-- Each list, by what its rows are looked up by, too.
local function index(rows, key)
  for _, row in ipairs(rows) do
    rows[row[key]] = row
  end
end

index(FRAMES, "tag")
index(MESSAGES, "tag")
index(PARTS, "name")
index(STATES, "name")

for _, message in ipairs(MESSAGES) do
  for _, state in ipairs(message.states) do
    message.states[state] = true
  end
end

local TYPES = {
  char = {ProtoField.char, base.HEX, function(range) return range:uint() end},
  uint8 = {ProtoField.uint8, base.DEC, function(range) return range:uint() end},
  uint16 = {ProtoField.uint16, base.DEC, function(range) return range:uint() end},
  uint32 = {ProtoField.uint32, base.DEC, function(range) return range:uint() end},
  uint64 = {ProtoField.uint64, base.DEC, function(range) return range:uint64() end},
  int8 = {ProtoField.int8, base.DEC, function(range) return range:int() end},
  int16 = {ProtoField.int16, base.DEC, function(range) return range:int() end},
  int32 = {ProtoField.int32, base.DEC, function(range) return range:int() end},
  int64 = {ProtoField.int64, base.DEC, function(range) return range:int64() end},
  lsn = {ProtoField.uint64, base.HEX, function(range) return range:uint64() end},
}

local fields = {}

local function register(field)
  fields[#fields + 1] = field
  return field
end

local function node_field(described)
  return register(ProtoField.none(described.abbr, described.name, described.about))
end

local DEFINE = {}

local function define_all(elements)
  for _, element in ipairs(elements) do
    DEFINE[element.kind](element)
  end
end

function DEFINE.number(element)
  local create, shown = table.unpack(TYPES[element.type])
  local named = element.size < 8 and element.values or nil
  element.field = register(create(element.abbr, element.name, shown, named, nil, element.about))
end

function DEFINE.time(element)
  element.field = register(ProtoField.absolute_time(element.abbr, element.name, base.UTC, element.about))
end

function DEFINE.double(element)
  element.field = register(ProtoField.double(element.abbr, element.name, element.about))
end

function DEFINE.string(element)
  element.field = register(ProtoField.stringz(element.abbr, element.name, base.UNICODE, element.about))
end

function DEFINE.bytes(element)
  element.field = register(ProtoField.bytes(element.abbr, element.name, base.NONE, element.about))
end

DEFINE.part = function(element) element.field = node_field(element) end

DEFINE["repeat"] = function(element)
  element.field = node_field(element)
  define_all(element.item.elements)
end

function DEFINE.choice(element)
  local named = {}
  index(element.alternatives, "tag")
  for _, alternative in ipairs(element.alternatives) do
    named[alternative.tag] = alternative.name
    define_all(alternative.content and alternative.content.elements or {})
  end
  element.field = node_field(element)
  local create, shown = table.unpack(TYPES[element.tag_type])
  element.tag = register(create(element.tag_abbr, element.tag_name, shown, named, nil, element.about))
end

for _, described in ipairs({FRAMES, MESSAGES, PARTS}) do
  for _, structure in ipairs(described) do
    define_all(structure.elements)
  end
end

-- Reads messages by their descriptions, and adds what it reads to a tree; without a tree it only checks.

-- The bytes of one message, and how far they have been read.
local Cursor = {}
Cursor.__index = Cursor

local function cursor_of(bytes, parameters, relation_of)
  local self = {bytes = bytes, size = bytes:len(), at = 0, parameters = parameters, relation_of = relation_of}
  self.sizes, self.found = {}, {}
  return setmetatable(self, Cursor)
end

-- An empty range is not permitted after the last byte.
function Cursor:range(size)
  return self.bytes:range(size == 0 and self.at == self.size and self.at - 1 or self.at, size)
end

function Cursor:left()
  return self.size - self.at
end

function Cursor:refuse(path, ...)
  error({path = path, at = self.at, text = string.format(...)}, 0)
end

function Cursor:take(size, path)
  if size > self:left() then
    self:refuse(path, "needs %d more bytes, %d are left", size, self:left())
  end
  local range = self:range(size)
  self.at = self.at + size
  return range
end

local function add(tree, ...)
  return tree and tree:add(...)
end

local function append(item, text)
  if item and text and text ~= "" then
    item:append_text(text)
  end
end

-- Add a node that reaches over what `read` reads, which gets the node.
local function node(cursor, tree, field, label, read)
  local start = cursor.at
  local item = tree and tree:add(field, cursor:range(cursor:left())):set_text(label)
  read(item)
  if item then
    item:set_len(cursor.at - start)
  end
  return item
end

local READ = {} -- each returns the item that it has added, and what it is where that is not the element

local with_descriptions = false

-- Return whether a condition holds, by the parameters and the earlier fields of the same structure.
local HOLDS = {}

local function holds(cursor, only)
  return only == nil or HOLDS[only.is](cursor, only)
end

function HOLDS.set(cursor, only)
  return cursor.parameters[only.name] == true
end

HOLDS["since"] = function(cursor, only)
  return cursor.parameters.proto_version >= only.version
end

HOLDS["until"] = function(cursor, only)
  return cursor.parameters.proto_version <= only.version
end

function HOLDS.bit(cursor, only)
  return math.floor((cursor.sizes[only.name] or 0) / only.mask) % 2 == 1
end

HOLDS["not"] = function(cursor, only)
  return not holds(cursor, only.terms[1])
end

function HOLDS.all(cursor, only)
  for _, term in ipairs(only.terms) do
    if not holds(cursor, term) then
      return false
    end
  end
  return true
end

function HOLDS.any(cursor, only)
  for _, term in ipairs(only.terms) do
    if holds(cursor, term) then
      return true
    end
  end
  return false
end

local function read_element(cursor, element, path, label, tree)
  if not holds(cursor, element.only) then
    return
  end
  local item, row = READ[element.kind](cursor, element, path, label, tree)
  local about = (row or element).about
  if item and with_descriptions and about then
    item:append_text(" [" .. about .. "]")
  end
end

local function read_all(cursor, elements, path, tree)
  local outer = cursor.sizes
  cursor.sizes = {}
  for _, element in ipairs(elements) do
    read_element(cursor, element, path .. "." .. element.name, element.name, tree)
  end
  cursor.sizes = outer
end

-- Read a structure inside another: its only element stands for it, others are below a node.
local function read_inside(cursor, structure, field, path, label, tree)
  if structure.alone then
    return read_element(cursor, structure.elements[1], path, label, tree)
  end
  return node(cursor, tree, field, label, function(item) read_all(cursor, structure.elements, path, item) end)
end

local function bits_in_words(bits, number)
  local words = {}
  for _, bit in ipairs(bits) do
    if math.floor(number / bit.mask) % 2 == 1 then
      words[#words + 1] = bit.name
      number = number - bit.mask
    end
  end
  return #words > 0 and table.concat(words, ", ") or "none", number
end

local function checked(cursor, element, number, path)
  if element.constant and number ~= element.constant then
    cursor:refuse(path, "must be %s, not %s", element.constant, number)
  elseif element.values and not element.values[number] then
    cursor:refuse(path, "cannot be %s", number)
  elseif element.bits then
    local words, unknown = bits_in_words(element.bits, number)
    if unknown ~= 0 then
      cursor:refuse(path, "has unknown bits: %s", number)
    end
    return " (" .. words .. ")"
  end
  return element.size == 8 and element.values and " (" .. element.values[number] .. ")"
end

function READ.number(cursor, element, path, label, tree)
  local start = cursor.at
  local range = cursor:take(element.size, path)
  local number = tonumber(tostring(TYPES[element.type][3](range)))
  local item = add(tree, element.field, range)
  if item and element.type == "lsn" then
    item:set_text(string.format("%s: %X/%X", label, range:range(0, 4):uint(), range:range(4, 4):uint()))
  elseif item and label ~= element.name then
    item:set_text(string.format("%s: %s", label, tostring(number)))
  end
  cursor.at = start
  append(item, checked(cursor, element, number, path))
  cursor.at = start + element.size
  cursor.sizes[element.name], cursor.found[path] = number, number
  local relation = element.name == "relation_oid" and cursor.relation_of(number)
  if relation then
    cursor.relation = relation
    append(item, " (" .. relation.name .. ")")
  end
  return item
end

-- Return an item, with its label instead of the name of the element.
local function labelled(item, element, label)
  if item and label ~= element.name then
    item:set_text(label .. item.text:sub(#element.name + 1))
  end
  return item
end

local MICROSECONDS = Int64(1000000)
local EPOCH = Int64(946684800) -- 2000-01-01 in Unix time

-- Microseconds since 2000, which can be negative.
function READ.time(cursor, element, path, label, tree)
  local range = cursor:take(element.size, path)
  local time = range:int64()
  local seconds, rest = time / MICROSECONDS, time % MICROSECONDS
  if rest < Int64(0) then
    seconds, rest = seconds - Int64(1), rest + MICROSECONDS
  end
  local item = add(tree, element.field, range, NSTime.new((seconds + EPOCH):tonumber(), rest:tonumber() * 1000))
  return labelled(item, element, label)
end

function READ.double(cursor, element, path, label, tree)
  local range = cursor:take(element.size, path)
  return labelled(add(tree, element.field, range), element, label)
end

function READ.string(cursor, element, path, label, tree)
  cursor.raw = cursor.raw or cursor.bytes:raw()
  local stop = cursor.raw:find("\0", cursor.at + 1, true)
  if not stop then
    cursor:refuse(path, "has no zero byte at its end")
  end
  local range = cursor:take(stop - cursor.at, path)
  local text = range:range(0, range:len() - 1):string(ENC_UTF_8)
  local item = tree and tree:add_packet_field(element.field, range, ENC_UTF_8)
  if item and label ~= element.name then
    item:set_text(label .. ": " .. text)
  end
  cursor.found[path] = text
  return item
end

local SHOWN = 120 -- bytes of a value that are shown after its name

-- Return the front of a value as text, else as hexadecimal digits, and whether it is text.
local function preview(range)
  if range:len() == 0 then
    return "''", true
  end
  local front = range:range(0, math.min(range:len(), SHOWN))
  local raw, text, more = front:raw(), front:string(ENC_UTF_8), ""
  if front:len() < range:len() then
    raw = raw:gsub("[\192-\255]?[\128-\191]*$", "")
    text, more = text:sub(1, #raw), "…"
  end
  if text == raw and not raw:find("%c") then
    return "'" .. text .. "'" .. more, true
  end
  return tostring(front:bytes()):lower() .. more, false
end

function READ.bytes(cursor, element, path, label, tree)
  local size = element.size or element.length and cursor.sizes[element.length] or cursor:left()
  local range = cursor:take(size, path)
  local item = labelled(add(tree, element.field, range), element, label)
  cursor.payload = not element.length and not element.size and range or nil
  if item then
    local shown, readable = preview(range)
    cursor.preview = " " .. shown
    append(item, readable and " = " .. shown)
  end
  return item
end

-- A part with a length ends where that says; the bytes that it does not know are no message that a frame carries.
function READ.part(cursor, element, path, label, tree)
  local size, outer = element.length and cursor.sizes[element.length], cursor.size
  if size and size > cursor:left() then
    cursor:refuse(path, "needs %d more bytes, %d are left", size, cursor:left())
  elseif size then
    cursor.size = cursor.at + size
  end
  local item = read_inside(cursor, PARTS[element.part], element.field, path, label, tree)
  if size then
    cursor.size, cursor.payload = outer, nil
  end
  return item
end

READ["repeat"] = function(cursor, element, path, _, tree)
  local relation = element.name == "columns" and cursor.relation
  local i, count = 0, element.times or element.count and cursor.sizes[element.count]
  while count and i < count or not count and cursor:left() > 0 do
    local column = relation and relation.columns[i + 1]
    local label = string.format("%s[%d]%s", element.name, i, column and " (" .. column .. ")" or "")
    read_inside(cursor, element.item, element.field, string.format("%s[%d]", path, i), label, tree)
    i = i + 1
  end
end

-- The tag of a value represents it, and its content is below; the tag of another choice is a field next to its content.
-- An optional choice is followed by a constant, by which one sees that it is absent.
function READ.choice(cursor, element, path, label, tree)
  local tag_path = element.valued and path or path:sub(1, #path - #element.name) .. element.tag_name
  if cursor:left() == 0 then
    cursor:refuse(tag_path, "is missing")
  end
  local tag = cursor.bytes:range(cursor.at, 1):uint()
  local alternative = element.alternatives[tag]
  if tag == element.before then
    return
  elseif not alternative or not holds(cursor, alternative.only) then
    cursor:refuse(tag_path, "has no tag %d", tag)
  end
  local item = add(tree, element.tag, cursor:take(1, tag_path))
  local content = alternative.part and PARTS[alternative.part] or alternative.content
  cursor.preview = nil
  if item and element.valued then
    item:set_text(label .. ": " .. alternative.name)
  end
  if content and element.valued and not content.alone then
    read_all(cursor, content.elements, path, item)
  elseif content then
    read_inside(cursor, content, element.field, path, element.name, element.valued and item or tree)
  end
  append(element.valued and item, cursor.preview)
  return item, alternative
end

-- The options of a client: what it asks for in START_REPLICATION, else what the preferences say.

local proto = Proto("pgoutput", "PostgreSQL Logical Replication")

local function preference(option)
  if option.type == "number" then
    return Pref.uint(option.name, option.newest, option.about or "")
  elseif option.type == "switch" then
    return Pref.bool(option.name, true, option.about or "")
  end
  local choices = {}
  for i, value in ipairs(option.values) do
    choices[i] = {i, value.name, i}
  end
  return Pref.enum(option.name, #choices, option.about or "", choices, false)
end

for _, option in ipairs(OPTIONS) do
  proto.prefs[option.name] = preference(option)
end
proto.prefs.descriptions = Pref.bool("descriptions", false, "Whether each field is shown with what it means.")
proto.prefs.note = Pref.statictext("They hold where the capture does not contain the command START_REPLICATION.", "")

local function preferred()
  local given = {}
  for _, option in ipairs(OPTIONS) do
    local value = proto.prefs[option.name]
    given[option.name] = option.values and option.values[value].name or value
  end
  return given
end

-- PostgreSQL's words for boolean values; before 16, the option streaming was one.
local TRUE, FALSE = {"true", "on", "yes", "1", "t", "y"}, {"false", "off", "no", "0", "f", "n"}
local SWITCH = {}
for i = 1, #TRUE do
  SWITCH[TRUE[i]], SWITCH[FALSE[i]] = "on", "off"
end

-- Return the value of an option; nil for what PostgreSQL refuses.
local function value_of(option, text)
  if option.type == "number" then
    return tonumber(text)
  elseif option.type == "switch" then
    return SWITCH[text:lower()] == "on"
  end
  local words = {}
  for _, value in ipairs(option.values) do
    words[value.name] = value.name
  end
  return words[text:lower()] or words[SWITCH[text:lower()]]
end

-- Return the value in quotes that begins at a place, in which doubled quotes stand for one, and where it ends.
local function quoted(text, at)
  local close = at
  repeat
    close = text:find("'", close + 1, true) or #text + 1
    local doubled = text:sub(close + 1, close + 1) == "'"
    close = doubled and close + 1 or close
  until not doubled
  return text:sub(at + 1, close - 1), close + 1
end

-- Return the options of a START_REPLICATION as they are written: a name, and a value in quotes or none.
local function written_options(query)
  local written, at = {}, (query:find("(", 1, true) or #query) + 1
  while true do
    local _, stop, name = query:find('^[%s,]*"?([%w_]+)"?%s*', at)
    if not name then
      return written
    end
    local value = "true"
    at = stop + 1
    if query:sub(at, at) == "'" then
      value, at = quoted(query, at)
    end
    written[name:lower()] = value
  end
end

-- Return the options of a START_REPLICATION, and whether it is this plugin's: others have no proto_version.
local function asked(query)
  local written, given = written_options(query), {}
  for _, option in ipairs(OPTIONS) do
    local value = written[option.name] and value_of(option, written[option.name])
    if value == nil then
      value = option.default or false
    end
    given[option.name] = value
  end
  return given, written.proto_version ~= nil
end

local function set_of(option, value)
  if option.type == "switch" then
    return value and option.sets or {}
  end
  for _, each in ipairs(option.values or {}) do
    if each.name == value then
      return each.sets or {}
    end
  end
  return {}
end

-- Return the parameters of the layouts.
local function parameters_of(given, state)
  local parameters = {proto_version = given.proto_version}
  for _, option in ipairs(OPTIONS) do
    for _, name in ipairs(set_of(option, given[option.name])) do
      parameters[name] = true
    end
  end
  for _, name in ipairs(state and state.sets or {}) do
    parameters[name] = true
  end
  return parameters
end

local function options_in_words(given)
  local words = {}
  for i, option in ipairs(OPTIONS) do
    words[i] = string.format("%s %s", option.name, tostring(given[option.name]))
  end
  return table.concat(words, ", ")
end

-- Reads a whole message in a state, and keeps what messages say of tables.

-- Return what finds the description of a table that was the last one before a place in the capture.
local function relations_before(relations, place)
  return function(oid)
    local described = relations[oid] or {}
    for i = #described, 1, -1 do
      if described[i].place < place then
        return described[i]
      end
    end
  end
end

-- Return a table's OID, and its name with those of its columns, where a message has described one.
local function described(message, found, place)
  local oid, name = found[message.class .. ".relation_oid"], found[message.class .. ".name"]
  if message.group ~= "description" or not oid or not name then
    return nil
  end
  local schema = found[message.class .. ".namespace"] or ""
  local columns = {}
  local function column(i)
    return found[string.format("%s.columns[%d].name", message.class, i)]
  end
  while column(#columns) do
    columns[#columns + 1] = column(#columns)
  end
  return oid, {place = place, name = (schema == "" and "pg_catalog" or schema) .. "." .. name, columns = columns}
end

local function keep(relations, oid, relation)
  relations[oid] = relations[oid] or {}
  table.insert(relations[oid], relation)
end

local function read_message(cursor, message, given, tree)
  if message.needs and given.proto_version < message.needs then
    cursor:refuse(message.class, "needs proto_version %d", message.needs)
  end
  local option = message.option
  if option and given[option.name] == option.off then
    cursor:refuse(message.class, "comes only with the option %s", option.name)
  end
  read_all(cursor, message.elements, message.class, tree)
  if cursor:left() > 0 then
    cursor:refuse(message.class, "ends here, %d more bytes follow", cursor:left())
  end
end

local function no_relation()
  return nil
end

-- Read a message; return the cursor, with what was found, and the fault or nil.
local function attempt(bytes, message, given, state, relation_of, tree)
  local names = message.group ~= "description" and relation_of or no_relation
  local cursor = cursor_of(bytes, parameters_of(given, state), names)
  local done, fault = pcall(read_message, cursor, message, given, tree)
  if not done and type(fault) ~= "table" then
    error(fault, 0)
  end
  return cursor, not done and fault or nil
end

-- Return the first state in which a message can be read; nil for none.
local function likely_state(bytes, message, given)
  for _, state in ipairs(STATES) do
    local _, fault = nil, true
    if message.states[state.name] then
      _, fault = attempt(bytes, message, given, state, no_relation, nil)
    end
    if not fault then
      return state
    end
  end
end

local function tagged(messages, bytes)
  return bytes:len() > 0 and messages[bytes:range(0, 1):uint()] or nil
end

-- Return whether bytes, which may be of any COPY, are a frame that holds nothing but a message of this plugin.
local function plausible(bytes, given)
  local frame = tagged(FRAMES, bytes)
  if not frame then
    return false
  end
  local cursor, fault = attempt(bytes, frame, given, nil, no_relation, nil)
  if fault or not cursor.payload then
    return not fault
  end
  local message = tagged(MESSAGES, cursor.payload)
  return message ~= nil and likely_state(cursor.payload, message, given) ~= nil
end

-- Follows each connection, and shows its frames below what Wireshark shows of the connection itself.

local message_field = register(ProtoField.string("pgoutput.message", "message", base.UNICODE, "The kind of message."))
local state_field = register(ProtoField.string("pgoutput.state", "state", base.UNICODE, "Where in the stream it is."))
local malformed =
  ProtoExpert.new("pgoutput.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local unexpected =
  ProtoExpert.new("pgoutput.unexpected", "Out of sequence", expert.group.SEQUENCE, expert.severity.WARN)

proto.fields = fields
proto.experts = {malformed, unexpected}

local conversations, contexts = {}, {}

function proto.init()
  conversations, contexts = {}, {}
end

-- A context says what is known when a PDU comes: the options (none outside replication), whether they are assumed,
-- whether messages of this plugin come, and the state (none where it is not known). It is never changed, so that
-- frames can be shown again, in any order.
local function conversation_of(stream)
  local assumed = {given = preferred(), assumed = true, logical = true}
  conversations[stream] = conversations[stream] or {relations = {}, context = assumed}
  return conversations[stream]
end

local function started(query)
  if not query:upper():find("^%s*START_REPLICATION") then
    return {}
  end
  local given, logical = asked(query)
  return {given = given, logical = logical, state = STATES[1]}
end

local function followed(context, message)
  if not message.enters and not message.steps then
    return context
  end
  local here = message.steps and context.state and message.steps[context.state.name]
  local state = STATES[message.enters or here]
  return {given = context.given, logical = true, assumed = context.assumed, state = state}
end

local function show_fault(item, fault)
  if fault then
    item:add_proto_expert_info(malformed, string.format("%s at byte %d: %s", fault.path, fault.at, fault.text))
  end
end

local function show_state(item, bytes, context, state)
  local shown = item:add(state_field, bytes:range(0, 0), state and state.name or ""):set_generated()
  local text = state and state.name .. (state.about and " (" .. state.about .. ")" or "") or "unknown"
  shown:set_text(string.format("state: %s; %s", text, options_in_words(context.given)))
end

local function show_no_message(bytes, tree)
  local text = bytes:len() > 0 and "the first byte is no tag of a message" or "it is empty"
  tree:add(message_field, bytes, ""):set_text("No message"):add_proto_expert_info(malformed, text)
  return "no message"
end

-- Show the message in a frame; return its name, and the context of the next one.
local function show_message(bytes, visit, context, tree)
  local message = tagged(MESSAGES, bytes)
  if not message then
    return show_no_message(bytes, tree), context
  end
  local state = context.state or likely_state(bytes, message, context.given)
  local item = tree:add(message_field, bytes, message.name):set_text(message.name)
  show_state(item, bytes, context, state)
  local relation_of = relations_before(visit.relations, visit.place)
  local cursor, fault = attempt(bytes, message, context.given, state, relation_of, item)
  show_fault(item, fault)
  if state and not message.states[state.name] then
    item:add_proto_expert_info(unexpected, string.format("%s does not come in the state %s", message.name, state.name))
  end
  local oid, relation = described(message, fault and {} or cursor.found, visit.place)
  if oid and visit.first then
    keep(visit.relations, oid, relation)
  end
  relation = relation or cursor.relation
  local name = message.name .. (relation and " " .. relation.name or "")
  item:set_text(name)
  return name, followed(context, message)
end

-- Show the frame in a CopyData; return the context of the next one.
local function show_frame(bytes, visit, context)
  local frame = tagged(FRAMES, bytes)
  if not frame or (context.assumed and not plausible(bytes, context.given)) then
    return context
  end
  local top = visit.tree:add(proto, bytes)
  local item = top:add(message_field, bytes, frame.name):set_text(frame.name)
  local cursor, fault = attempt(bytes, frame, context.given, nil, no_relation, item)
  show_fault(item, fault)
  local name, after = frame.name, context
  if not fault and cursor.payload and context.logical then
    name, after = show_message(cursor.payload, visit, context, top)
  end
  top:append_text(", " .. name)
  table.insert(visit.names, name)
  return after
end

-- Show a message of the connection, which begins with its tag and its length; return the context of the next one.
local function show(range, visit, context)
  local tag = range:range(0, 1):uint()
  if tag == QUERY.tag and range:len() > QUERY.header then
    return started(range:range(QUERY.header):stringz())
  elseif tag == COPY_DATA.tag and range:len() > COPY_DATA.header and context.given then
    return show_frame(range:range(COPY_DATA.header), visit, context)
  end
  return context
end

local LISTED = 8 -- names in the column Info

local function list(pinfo, names)
  if #names > 0 then
    local more = #names > LISTED and string.format(", and %d more", #names - LISTED) or ""
    pinfo.cols.protocol = "PGOUTPUT"
    pinfo.cols.info:clear_fence()
    pinfo.cols.info = table.concat(names, ", ", 1, math.min(#names, LISTED)) .. more
  end
end

-- Wireshark's own dissector of PostgreSQL puts the messages of a connection together: one item of its for each.
local items_of_pgsql, streams = Field.new("pgsql"), Field.new("tcp.stream")
local sequences, following = Field.new("tcp.seq"), Field.new("tcp.nxtseq")
local NUMBERS = 4294967296 -- of TCP

-- Forget the state where bytes of a side are missing: in the capture, or because frames are shown in another order.
local function follow_bytes(conversation, side, some)
  local sequence, after = sequences(), following()
  if not sequence or not after then
    return
  end
  local expected = conversation[side] or sequence.value
  local ahead = (sequence.value - expected) % NUMBERS
  if ahead ~= 0 and (some or ahead < NUMBERS / 2) then
    local known = conversation.context
    conversation.context = {given = known.given, logical = known.logical, assumed = known.assumed}
  end
  if some or (after.value - expected) % NUMBERS < NUMBERS / 2 then
    conversation[side] = after.value
  end
end

function proto.dissector(_, pinfo, tree)
  local items, stream = {items_of_pgsql()}, streams()
  if not stream or (#items == 0 and not conversations[stream.value]) then
    return
  end
  with_descriptions = proto.prefs.descriptions
  local conversation, names = conversation_of(stream.value), {}
  local first = contexts[pinfo.number] == nil
  local here = contexts[pinfo.number] or {}
  contexts[pinfo.number] = here
  if first then
    follow_bytes(conversation, pinfo.src_port, #items > 0)
  end
  for i, item in ipairs(items) do
    local visit = {tree = tree, names = names, first = first, relations = conversation.relations}
    visit.place = pinfo.number + i / 65536
    here[i] = here[i] or conversation.context
    local after = show(item.range, visit, here[i])
    conversation.context = first and after or conversation.context
  end
  list(pinfo, names)
end

register_postdissector(proto)
