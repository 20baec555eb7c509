//! Follows a slot with pg_walstream, and reports what was committed: pgoutput conformance.
//!
//! Arguments: URL SLOT PUBLICATION PROTO_VERSION STREAMING BINARY MESSAGES TWO_PHASE TIMEOUT. The library connects again
//! by itself, and sends statuses; what it leaves to its user is done here as PostgreSQL's documentation asks.

use pg_walstream::{
    CancellationToken, ChangeEvent, ColumnValue, EventType, LogicalReplicationStream, Lsn, ReplicationStreamConfig, RowData,
    StreamingMode,
};
use serde_json::{json, Map, Value};
use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;

type Failure = Box<dyn std::error::Error>;

#[derive(Default)]
struct Follower {
    open: Option<Vec<ChangeEvent>>,
    last_lsn: u64,
    streams: HashMap<u32, Vec<ChangeEvent>>,
    streaming: Option<u32>,
    prepared: HashMap<String, Vec<ChangeEvent>>,
}

fn value(column: &ColumnValue) -> Value {
    match column {
        ColumnValue::Null => Value::Null,
        ColumnValue::Text(text) => json!(String::from_utf8_lossy(text)),
        ColumnValue::Binary(data) => json!({"binary": hex(data)}),
    }
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn row(data: &RowData, keys: Option<&[std::sync::Arc<str>]>) -> Value {
    let mut found = Map::new();
    for (name, column) in data.iter() {
        if keys.is_none_or(|keys| keys.iter().any(|key| key == name)) {
            found.insert(name.to_string(), value(column));
        }
    }
    Value::Object(found)
}

fn logical(transaction: Value, prefix: &str, content: &[u8]) -> Value {
    let text = match std::str::from_utf8(content) {
        Ok(text) => text.to_string(),
        Err(_) => format!("\\x{}", hex(content)),
    };
    json!({"transaction": transaction, "operation": "message", "prefix": prefix, "content": text})
}

fn lines(transaction: &str, event: &ChangeEvent) -> Vec<Value> {
    let is_key = |identity: &pg_walstream::ReplicaIdentity| !matches!(identity, pg_walstream::ReplicaIdentity::Full);
    match &event.event_type {
        EventType::Insert { schema, table, data, .. } => vec![json!({
            "transaction": transaction, "table": format!("{schema}.{table}"), "operation": "insert", "new": row(data, None)
        })],
        EventType::Update { schema, table, old_data, new_data, replica_identity, key_columns, .. } => {
            let keys = is_key(replica_identity).then_some(&key_columns[..]);
            vec![json!({
                "transaction": transaction, "table": format!("{schema}.{table}"), "operation": "update",
                "new": row(new_data, None), "old": old_data.as_ref().map(|data| row(data, keys))
            })]
        }
        EventType::Delete { schema, table, old_data, replica_identity, key_columns, .. } => {
            let keys = is_key(replica_identity).then_some(&key_columns[..]);
            vec![json!({
                "transaction": transaction, "table": format!("{schema}.{table}"), "operation": "delete",
                "old": row(old_data, keys)
            })]
        }
        EventType::Truncate { tables, .. } => tables
            .iter()
            .map(|table| json!({"transaction": transaction, "table": &**table, "operation": "truncate"}))
            .collect(),
        EventType::Message { prefix, content, .. } => vec![logical(json!(transaction), prefix, content)],
        _ => vec![],
    }
}

fn write(found: &[Value]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for line in found {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

impl Follower {
    /// Take an event; return the LSN to confirm.
    fn take(&mut self, event: ChangeEvent) -> Result<Option<Lsn>, Failure> {
        let wrong = |what: &str| -> Result<Option<Lsn>, Failure> { Err(what.into()) };
        match &event.event_type {
            EventType::Begin { final_lsn, .. } => {
                if final_lsn.value() == 0 {
                    return wrong("a Begin without an LSN");
                }
                self.last_lsn = final_lsn.value();
                self.open = Some(vec![]);
            }
            EventType::BeginPrepare { prepare_lsn, .. } => {
                self.last_lsn = prepare_lsn.value();
                self.open = Some(vec![]);
            }
            EventType::Commit { commit_lsn, end_lsn, .. } => {
                let changes = self.open.take();
                if changes.is_none() || commit_lsn.value() != self.last_lsn {
                    return wrong("a Commit that is not that of its Begin");
                }
                return self.commit(changes.unwrap_or_default(), *end_lsn);
            }
            EventType::Prepare { prepare_lsn, end_lsn, gid, .. } => {
                let changes = self.open.take();
                if changes.is_none() || prepare_lsn.value() != self.last_lsn {
                    return wrong("a Prepare that is not that of its Begin Prepare");
                }
                self.prepared.insert(gid.to_string(), changes.unwrap_or_default());
                return Ok(Some(*end_lsn));
            }
            EventType::CommitPrepared { end_lsn, gid, .. } => {
                let changes = self.prepared.remove(&**gid).unwrap_or_default();
                return self.commit(changes, *end_lsn);
            }
            EventType::RollbackPrepared { rollback_end_lsn, gid, .. } => {
                self.prepared.remove(&**gid);
                return Ok(Some(*rollback_end_lsn));
            }
            EventType::StreamStart { transaction_id, first_segment } => {
                if self.streaming.is_some() || *transaction_id == 0 {
                    return wrong("an invalid Stream Start");
                }
                self.streaming = Some(*transaction_id);
                if *first_segment {
                    self.streams.insert(*transaction_id, vec![]);
                }
            }
            EventType::StreamStop => {
                if self.streaming.take().is_none() {
                    return wrong("a Stream Stop without a Stream Start");
                }
            }
            EventType::StreamCommit { transaction_id, end_lsn, .. } => {
                if self.streaming.is_some() {
                    return wrong("a Stream Commit within a segment");
                }
                let changes = self.streams.remove(transaction_id).unwrap_or_default();
                return self.commit(changes, *end_lsn);
            }
            EventType::StreamAbort { transaction_id, subtransaction_xid, .. } => {
                if self.streaming.is_some() {
                    return wrong("a Stream Abort within a segment");
                }
                if transaction_id == subtransaction_xid {
                    self.streams.remove(transaction_id);
                } else if let Some(kept) = self.streams.get_mut(transaction_id) {
                    kept.retain(|each| each.xid != Some(*subtransaction_xid));
                }
            }
            EventType::StreamPrepare { transaction_id, end_lsn, gid, .. } => {
                let changes = self.streams.remove(transaction_id).unwrap_or_default();
                self.prepared.insert(gid.to_string(), changes);
                return Ok(Some(*end_lsn));
            }
            EventType::Message { flags: 0, prefix, content, .. } => write(&[logical(Value::Null, prefix, content)])?,
            EventType::Insert { .. }
            | EventType::Update { .. }
            | EventType::Delete { .. }
            | EventType::Truncate { .. }
            | EventType::Message { .. } => {
                if let Some(xid) = self.streaming {
                    if event.xid == Some(0) {
                        return wrong("a change without an xid in a stream");
                    }
                    self.streams.entry(xid).or_default().push(event);
                } else if let Some(changes) = &mut self.open {
                    changes.push(event);
                } else {
                    return wrong("a change outside of a transaction");
                }
            }
            _ => {}
        }
        Ok(None)
    }

    fn commit(&mut self, changes: Vec<ChangeEvent>, end: Lsn) -> Result<Option<Lsn>, Failure> {
        let transaction = end.to_string();
        let found: Vec<Value> = changes.iter().flat_map(|change| lines(&transaction, change)).collect();
        write(&found)?;
        Ok(Some(end))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, slot, publication, version, streaming, binary, messages, two_phase, timeout] = &arguments[..] else {
        return Err("nine arguments".into());
    };
    let streaming = match streaming.as_str() {
        "on" => StreamingMode::On,
        "parallel" => StreamingMode::Parallel,
        _ => StreamingMode::Off,
    };
    let config = ReplicationStreamConfig::builder(slot.as_str(), publication.as_str())
        .with_protocol_version(version.parse()?)
        .with_streaming_mode(streaming)
        .with_binary(binary == "true")
        .with_messages(messages == "true")
        .with_two_phase(two_phase == "true")
        .with_feedback_interval(Duration::from_secs(1))
        .with_connection_timeout(Duration::from_secs_f64(timeout.parse()?))
        .with_existing_slot_required(false);
    let mut stream = LogicalReplicationStream::new(&format!("{url}?replication=database"), config).await?;
    stream.start(None).await?;
    let mut events = stream.into_stream(CancellationToken::new());
    let mut follower = Follower::default();
    loop {
        let event = events.next_event().await?;
        if let Some(end) = follower.take(event)? {
            events.update_flushed_lsn(end);
            events.update_applied_lsn(end);
        }
    }
}
