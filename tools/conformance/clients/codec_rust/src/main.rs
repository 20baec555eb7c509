//! Follows a slot with the Rust codec over pgwire-replication's connection, and reports what was committed: pgoutput
//! conformance.
//!
//! Arguments: HOST PORT USER PASSWORD DATABASE SLOT PUBLICATION PROTO_VERSION STREAMING BINARY MESSAGES TWO_PHASE ORIGIN
//! TIMEOUT. A lost connection is opened again, and what comes again is reported once. A thread writes the lines, so that
//! statuses are sent while nobody reads them.

mod connection;
mod transactions;

use connection::{Connection, Failure, Server};
use pgoutput_codec::pgoutput::{Options, Streaming};
use pgoutput_codec::replication::{
    self, primary_keepalive_reply_requested, Frame, Layout, StandbyStatusUpdate,
};
use pgoutput_codec::{Lsn, Timestamp};
use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender, TrySendError};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::time::{sleep, timeout};
use transactions::{Follower, Stored};

const STATUS_INTERVAL: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);
/// Transactions that wait to be written.
const WAITING: usize = 64;
/// 2000-01-01 in Unix time.
const EPOCH: Duration = Duration::from_secs(946_684_800);

/// How far the thread that writes has come.
#[derive(Default)]
struct Progress {
    /// The number of tasks that are not written yet.
    waiting: AtomicUsize,
    /// The LSN up to which everything is written.
    lsn: AtomicU64,
}

fn write(tasks: &Receiver<Stored>, progress: &Progress) -> std::io::Result<()> {
    for Stored { lines, end } in tasks {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        progress.lsn.fetch_max(end.0, SeqCst);
        progress.waiting.fetch_sub(1, SeqCst);
    }
    Ok(())
}

/// One connection.
struct Stream<'a> {
    connection: Connection,
    follower: &'a mut Follower,
    tasks: &'a SyncSender<Stored>,
    progress: &'a Progress,
    /// How far the server has sent its WAL.
    told: Lsn,
    sent: Lsn,
    sent_at: Instant,
}

impl Stream<'_> {
    /// Read until the connection is lost, or something is refused.
    async fn follow(&mut self, silence: Duration) -> Result<(), Failure> {
        let mut heard = Instant::now();
        loop {
            match timeout(PAUSE, self.connection.receive()).await {
                Ok(received) => {
                    let data = received?;
                    self.frame(&data).await?;
                    heard = Instant::now();
                }
                Err(_) if heard.elapsed() > silence => {
                    return Err(Failure::Lost(
                        "nothing has come for longer than the timeout".into(),
                    ));
                }
                Err(_) => {}
            }
            if self.position() != self.sent || self.sent_at.elapsed() > STATUS_INTERVAL {
                self.confirm().await?;
            }
        }
    }

    async fn frame(&mut self, data: &bytes::Bytes) -> Result<(), Failure> {
        match replication::parse(data, &Layout)? {
            Frame::PrimaryKeepalive(keepalive) => {
                self.told = self.told.max(keepalive.wal_end);
                if keepalive.reply_requested == primary_keepalive_reply_requested::REPLY_AT_ONCE {
                    self.confirm().await?;
                }
            }
            Frame::XLogData(wal) => {
                if let Some(task) = self.follower.take(&data.slice_ref(wal.data))? {
                    self.store(task).await?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Have a transaction written; while that has to wait, the server receives a status, as a sign of life.
    async fn store(&mut self, mut task: Stored) -> Result<(), Failure> {
        self.progress.waiting.fetch_add(1, SeqCst);
        loop {
            task = match self.tasks.try_send(task) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(task)) => task,
                Err(error) => return Err(Failure::Refused(error.to_string())),
            };
            sleep(PAUSE).await;
            if self.sent_at.elapsed() > STATUS_INTERVAL {
                self.confirm().await?;
            }
        }
    }

    /// The LSN up to which nothing is left to be written.
    fn position(&self) -> Lsn {
        let is_idle = self.progress.waiting.load(SeqCst) == 0 && !self.follower.is_open();
        let written = Lsn(self.progress.lsn.load(SeqCst));
        if is_idle {
            written.max(self.told)
        } else {
            written
        }
    }

    async fn confirm(&mut self) -> Result<(), Failure> {
        let lsn = self.position();
        let now = SystemTime::UNIX_EPOCH
            .elapsed()
            .unwrap_or_default()
            .saturating_sub(EPOCH);
        let status = Frame::StandbyStatusUpdate(StandbyStatusUpdate {
            write_lsn: lsn,
            flush_lsn: lsn,
            apply_lsn: lsn,
            send_time: Timestamp(i64::try_from(now.as_micros()).unwrap_or(i64::MAX)),
            reply_requested: 0,
        });
        (self.sent, self.sent_at) = (lsn, Instant::now());
        self.connection
            .send(&replication::build(&status, &Layout)?)
            .await
    }
}

/// Return the command; what is not requested is left out, since older servers do not know all options.
fn start_command(slot: &str, publication: &str, version: &str, asked: &[String]) -> String {
    let known = [
        ("streaming", "off"),
        ("binary", "false"),
        ("messages", "false"),
        ("two_phase", "false"),
        ("origin", "any"),
    ];
    let option = |name: &str, value: &str| format!("{name} '{}'", value.replace('\'', "''"));
    let names = format!("\"{}\"", publication.replace('"', "\"\""));
    let mut options = vec![
        option("proto_version", version),
        option("publication_names", &names),
    ];
    let others = known
        .iter()
        .zip(asked)
        .filter(|((_, default), value)| value != default);
    options.extend(others.map(|((name, _), value)| option(name, value)));
    format!(
        "START_REPLICATION SLOT \"{slot}\" LOGICAL 0/0 ({})",
        options.join(", ")
    )
}

async fn run(
    tasks: &SyncSender<Stored>,
    progress: &Progress,
) -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, user, password, database, slot, publication, version, asked @ .., silence] =
        &arguments[..]
    else {
        return Err("fourteen arguments".into());
    };
    let server = Server {
        host: host.clone(),
        port: port.parse()?,
        user: user.clone(),
        password: password.clone(),
        database: database.clone(),
    };
    let streaming = match asked.first().map(String::as_str) {
        Some("on") => Streaming::On,
        Some("parallel") => Streaming::Parallel,
        _ => Streaming::Off,
    };
    let proto_version = version.parse()?;
    let options = Options {
        proto_version,
        streaming,
    };
    let silence = Duration::from_secs_f64(silence.parse()?);
    let command = start_command(slot, publication, version, asked);
    let mut follower = Follower::new(options).map_err(|error| error.to_string())?;
    loop {
        match follow(&server, &command, silence, &mut follower, tasks, progress).await {
            Err(Failure::Refused(text)) => return Err(text.into()),
            Err(Failure::Lost(text)) => eprintln!("connecting again: {text}"),
            Ok(()) => {}
        }
        sleep(PAUSE).await;
    }
}

async fn follow(
    server: &Server,
    command: &str,
    silence: Duration,
    follower: &mut Follower,
    tasks: &SyncSender<Stored>,
    progress: &Progress,
) -> Result<(), Failure> {
    follower.connected()?;
    let opening = timeout(silence, Connection::open(server, command)).await;
    let connection = opening.map_err(|_| Failure::Lost("the server does not answer".into()))??;
    let mut stream = Stream {
        connection,
        follower,
        tasks,
        progress,
        told: Lsn(0),
        sent: Lsn(0),
        sent_at: Instant::now(),
    };
    stream.follow(silence).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (tasks, received) = sync_channel(WAITING);
    let progress = Arc::new(Progress::default());
    let shared = Arc::clone(&progress);
    let writer = std::thread::spawn(move || write(&received, &shared));
    let result = run(&tasks, &progress).await;
    drop(tasks);
    writer
        .join()
        .expect("writing ends with an error, not a panic")?; // what was committed before is reported
    result
}
