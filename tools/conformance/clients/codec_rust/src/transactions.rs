//! Gathers the messages of a stream until their transaction commits, as an apply worker does.

use crate::connection::Failure;
use bytes::Bytes;
use pgoutput_codec::pgoutput::{
    self, message_flags, relation_column_flags, stream_start_first_segment, Delete, DeleteOld,
    Insert, Layout, Message, Options, PgoutputMessage, Relation, Session, Truncate, TupleDataValue,
    Update, UpdateOld,
};
use pgoutput_codec::{Lsn, Text};
use serde_json::{json, Map, Value};
use std::collections::HashMap;

/// What is to be stored next: the lines, and the LSN that may be confirmed then, or 0.
pub struct Stored {
    pub lines: Vec<Value>,
    pub end: Lsn,
}

/// The bytes of a change, or of a Relation, and the xid of the subtransaction that made it: messages borrow from them,
/// so that they are parsed again when their transaction ends.
struct Kept {
    xid: Option<u32>,
    layout: Layout,
    payload: Bytes,
}

/// What a Relation says: the table, and its columns, each with whether it is of the key.
struct Table {
    name: String,
    columns: Vec<(String, bool)>,
}

/// What belongs to one connection.
struct Connected {
    session: Session,
    tables: HashMap<u32, Table>,
    /// The open transaction, with what Begin says of the LSN in its Commit.
    open: Option<(Lsn, Vec<Kept>)>,
    streams: HashMap<u32, Vec<Kept>>,
    streaming: u32,
}

/// The state of a stream, over all its connections.
pub struct Follower {
    options: Options,
    now: Connected,
    /// Prepared transactions, in memory alone: a program that is to survive its own end stores them before it confirms
    /// them.
    prepared: HashMap<String, Vec<Value>>,
    /// The end of the last transaction that was handed on.
    ended: Lsn,
    /// The last logical message outside of transactions.
    spoke: Lsn,
}

type Found = Result<Option<Stored>, Failure>;

fn refuse<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Refused(text.into()))
}

impl Connected {
    fn new(options: Options) -> Result<Self, Failure> {
        Ok(Self {
            session: Session::new(options)?,
            tables: HashMap::new(),
            open: None,
            streams: HashMap::new(),
            streaming: 0,
        })
    }
}

impl Follower {
    pub fn new(options: Options) -> Result<Self, Failure> {
        Ok(Self {
            options,
            now: Connected::new(options)?,
            prepared: HashMap::new(),
            ended: Lsn(0),
            spoke: Lsn(0),
        })
    }

    /// Begin a connection: what was not committed comes again.
    pub fn connected(&mut self) -> Result<(), Failure> {
        self.now = Connected::new(self.options)?;
        Ok(())
    }

    /// Whether a transaction is open between its Begin and Commit.
    pub fn is_open(&self) -> bool {
        self.now.open.is_some()
    }

    /// Take the next message; return what is to be stored.
    pub fn take(&mut self, payload: &Bytes) -> Found {
        use PgoutputMessage as M;
        let layout = self.now.session.layout();
        match self.now.session.parse(payload)? {
            M::Begin(m) => self.begin(m.final_lsn),
            M::BeginPrepare(m) => self.begin(m.prepare_lsn),
            M::Commit(m) => {
                let changes = self.end(m.commit_lsn)?;
                self.commit(&changes, m.end_lsn)
            }
            M::Prepare(m) => {
                let changes = self.end(m.prepare_lsn)?;
                self.prepare(m.gid, &changes, m.end_lsn)
            }
            M::CommitPrepared(m) => {
                let lines = self.prepared.remove(&m.gid.to_string());
                Ok(self.hand(lines.unwrap_or_default(), m.end_lsn))
            }
            M::RollbackPrepared(m) => {
                self.prepared.remove(&m.gid.to_string());
                Ok(self.hand(vec![], m.rollback_end_lsn))
            }
            M::StreamStart(m) if m.xid == 0 => refuse("a stream without an xid"),
            M::StreamStart(m) => {
                self.now.streaming = m.xid;
                if m.first_segment == stream_start_first_segment::FIRST_SEGMENT {
                    self.now.streams.remove(&m.xid);
                }
                Ok(None)
            }
            M::StreamStop(_) | M::Origin(_) | M::Type(_) => Ok(None),
            M::StreamCommit(m) => {
                let changes = self.now.streams.remove(&m.xid).unwrap_or_default();
                self.commit(&changes, m.end_lsn)
            }
            M::StreamPrepare(m) => {
                let changes = self.now.streams.remove(&m.xid).unwrap_or_default();
                self.prepare(m.gid, &changes, m.end_lsn)
            }
            M::StreamAbort(m) if m.xid == m.subxid => {
                self.now.streams.remove(&m.xid);
                Ok(None)
            }
            M::StreamAbort(m) => {
                let changes = self.now.streams.entry(m.xid).or_default();
                changes.retain(|each| each.xid != Some(m.subxid));
                Ok(None)
            }
            M::Message(m) if m.flags & message_flags::TRANSACTIONAL == 0 => Ok(self.logical(&m)),
            M::Relation(m) if !layout.in_stream && !self.is_open() => {
                self.describe(&m);
                Ok(None)
            }
            M::Relation(Relation { xid, .. })
            | M::Insert(Insert { xid, .. })
            | M::Update(Update { xid, .. })
            | M::Delete(Delete { xid, .. })
            | M::Truncate(Truncate { xid, .. })
            | M::Message(Message { xid, .. }) => {
                let payload = payload.clone();
                self.keep(Kept {
                    xid,
                    layout,
                    payload,
                })
            }
        }
    }

    fn begin(&mut self, last: Lsn) -> Found {
        if self.is_open() {
            return refuse("a Begin within a transaction");
        }
        if last == Lsn(0) {
            return refuse("a Begin without an LSN");
        }
        self.now.open = Some((last, vec![]));
        Ok(None)
    }

    fn end(&mut self, last: Lsn) -> Result<Vec<Kept>, Failure> {
        match self.now.open.take() {
            Some((expected, changes)) if expected == last => Ok(changes),
            _ => refuse("the end of a transaction is not that of its Begin"),
        }
    }

    /// Keep a change until its transaction ends.
    fn keep(&mut self, kept: Kept) -> Found {
        if kept.layout.in_stream {
            if kept.xid == Some(0) {
                return refuse("a change without an xid in a stream");
            }
            self.now
                .streams
                .entry(self.now.streaming)
                .or_default()
                .push(kept);
        } else if let Some((_, changes)) = &mut self.now.open {
            changes.push(kept);
        } else {
            return refuse("a change outside of a transaction");
        }
        Ok(None)
    }

    /// Hand on a message outside of transactions, unless it was before: LSNs of such messages rise.
    fn logical(&mut self, message: &Message<'_>) -> Option<Stored> {
        if message.lsn <= self.spoke {
            return None;
        }
        self.spoke = message.lsn;
        let mut line = described(message);
        line["transaction"] = Value::Null;
        Some(Stored {
            lines: vec![line],
            end: Lsn(0),
        })
    }

    fn commit(&mut self, changes: &[Kept], end: Lsn) -> Found {
        let lines = self.lines(changes)?;
        Ok(self.hand(lines, end))
    }

    fn prepare(&mut self, gid: Text<'_>, changes: &[Kept], end: Lsn) -> Found {
        let lines = self.lines(changes)?;
        if end > self.ended {
            self.prepared.insert(gid.to_string(), lines);
        }
        Ok(self.hand(vec![], end))
    }

    /// Hand on the end of a transaction, unless that was done on an earlier connection: ends rise.
    fn hand(&mut self, mut lines: Vec<Value>, end: Lsn) -> Option<Stored> {
        if end <= self.ended {
            return None;
        }
        self.ended = end;
        for line in &mut lines {
            line["transaction"] = json!(end.to_string());
        }
        Some(Stored { lines, end })
    }

    fn describe(&mut self, relation: &Relation<'_>) {
        let columns = relation.columns.iter();
        let is_key = |flags| flags & relation_column_flags::KEY != 0;
        let schema = match relation.namespace.0 {
            b"" => Text::from("pg_catalog"),
            _ => relation.namespace,
        };
        let table = Table {
            name: format!("{schema}.{}", relation.name),
            columns: columns
                .map(|each| (each.name.to_string(), is_key(each.flags)))
                .collect(),
        };
        self.now.tables.insert(relation.relation_oid, table);
    }

    fn table(&self, oid: u32) -> Result<&Table, Failure> {
        match self.now.tables.get(&oid) {
            Some(table) => Ok(table),
            None => refuse(format!("no Relation describes {oid}")),
        }
    }

    /// Return what is to be reported of the changes of a transaction, whose Relations hold from then on.
    fn lines(&mut self, changes: &[Kept]) -> Result<Vec<Value>, Failure> {
        use PgoutputMessage as M;
        let mut found = vec![];
        for kept in changes {
            match pgoutput::parse(&kept.payload, &kept.layout)? {
                M::Relation(m) => self.describe(&m),
                M::Message(m) => found.push(described(&m)),
                M::Truncate(m) => {
                    for oid in m.relation_oids {
                        let table = &self.table(oid)?.name;
                        found.push(json!({"table": table, "operation": "truncate"}));
                    }
                }
                M::Insert(m) => {
                    let table = self.table(m.relation_oid)?;
                    let new = row(table, &m.new, false)?;
                    found.push(json!({"table": table.name, "operation": "insert", "new": new}));
                }
                M::Update(m) => {
                    let table = self.table(m.relation_oid)?;
                    let old = match &m.old {
                        Some(UpdateOld::Key(values)) => row(table, values, true)?,
                        Some(UpdateOld::Row(values)) => row(table, values, false)?,
                        None => Value::Null,
                    };
                    let new = row(table, &m.new, false)?;
                    found.push(
                        json!({"table": table.name, "operation": "update", "new": new, "old": old}),
                    );
                }
                M::Delete(m) => {
                    let table = self.table(m.relation_oid)?;
                    let old = match &m.old {
                        DeleteOld::Key(values) => row(table, values, true)?,
                        DeleteOld::Row(values) => row(table, values, false)?,
                    };
                    found.push(json!({"table": table.name, "operation": "delete", "old": old}));
                }
                _ => {}
            }
        }
        Ok(found)
    }
}

/// Return the values that were sent; columns beside a key are NULL on the wire, whatever they are.
fn row(table: &Table, values: &[TupleDataValue<'_>], is_key: bool) -> Result<Value, Failure> {
    let (name, count) = (&table.name, table.columns.len());
    if values.len() != count {
        return refuse(format!(
            "{} values, {name} has {count} columns",
            values.len()
        ));
    }
    let mut found = Map::new();
    for ((column, is_in_key), value) in table.columns.iter().zip(values) {
        let shown = match value {
            _ if is_key && !is_in_key => continue,
            TupleDataValue::Unchanged => continue,
            TupleDataValue::Null => Value::Null,
            TupleDataValue::Text(text) => json!(String::from_utf8_lossy(text)),
            TupleDataValue::Binary(data) => json!({"binary": hex(data)}),
        };
        found.insert(column.clone(), shown);
    }
    Ok(Value::Object(found))
}

fn described(message: &Message<'_>) -> Value {
    let content = match std::str::from_utf8(message.content) {
        Ok(text) => text.to_string(),
        Err(_) => format!("\\x{}", hex(message.content)),
    };
    json!({"operation": "message", "prefix": message.prefix.to_string(), "content": content})
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}
