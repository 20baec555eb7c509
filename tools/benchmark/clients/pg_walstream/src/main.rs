//! Reads from a publisher with pg_walstream. See tools/benchmark/harness.py for its arguments.

use pg_walstream::protocol::LogicalReplicationParser;
use pg_walstream::{CancellationToken, LogicalReplicationStream, ReplicationStreamConfig, StreamingMode};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, user, database, slot, publication, version, count] = &arguments[..] else {
        return Err("eight arguments".into());
    };
    let version: u32 = version.parse()?;
    let streaming = if version > 1 { StreamingMode::On } else { StreamingMode::Off };
    let config = ReplicationStreamConfig::builder(slot.as_str(), publication.as_str())
        .with_protocol_version(version)
        .with_streaming_mode(streaming)
        .with_existing_slot_required(false);
    let host = host.replace('/', "%2F"); // a directory, where the server is at a socket in it
    let address = format!("postgresql://{user}@{host}:{port}/{database}?replication=database");
    let mut stream = LogicalReplicationStream::new(&address, config).await?;
    stream.start(None).await?;
    let mut parser = LogicalReplicationParser::with_protocol_version(version);
    let cancelled = CancellationToken::new();
    for _ in 0..count.parse()? {
        let raw = stream.next_raw_event(&cancelled).await?;
        let hex: String = raw.data.iter().map(|byte| format!("{byte:02x}")).collect();
        let message = parser.parse_wal_message_bytes(raw.data.clone())?;
        println!("{} {hex} {message:?}", raw.wal_start);
    }
    stream.stop().await?;
    Ok(())
}
