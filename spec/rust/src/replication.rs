// Generated from spec/replication.yaml by: python -m tools.generate. Do not edit.

//! Streaming replication envelope: what they hold, and how they are read and built.
//!
//! Source: PostgreSQL's documentation, protocol-replication.

use alloc::{string::String, vec::Vec};

use crate::runtime as rt;

/// What determines the layout of a message besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout;

/// A piece of WAL; in logical replication, one message. PostgreSQL 19 calls it WALData.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XLogData<'a> {
    /// LSN of the message, 0/0 for Relation, Type and what an Origin follows.
    pub wal_start: rt::Lsn,
    /// In logical replication, the same as wal_start.
    pub wal_end: rt::Lsn,
    /// The server's clock when it sent this, in microseconds since 2000-01-01 UTC.
    pub send_time: rt::Timestamp,
    /// The payload, to the end.
    pub data: &'a [u8],
}

impl<'a> XLogData<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"w")?;
        let wal_start = r.number::<rt::Lsn>("wal_start")?;
        let wal_end = r.number::<rt::Lsn>("wal_end")?;
        let send_time = r.number::<rt::Timestamp>("send_time")?;
        let data = r.rest()?;
        Ok(Self {
            wal_start,
            wal_end,
            send_time,
            data,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"w")?;
        w.number(self.wal_start)?;
        w.number(self.wal_end)?;
        w.number(self.send_time)?;
        w.bytes(self.data)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for XLogData<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("wal_start", &self.wal_start);
        json.field("wal_end", &self.wal_end);
        json.field("send_time", &self.send_time);
        json.field("data", &self.data);
        json.close('}');
    }
}

/// Reports how far the server has read its WAL.
///
/// PostgreSQL 10 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryKeepalive {
    /// End of the WAL that the server has sent.
    pub wal_end: rt::Lsn,
    /// The server's clock when it sent this, in microseconds since 2000-01-01 UTC.
    pub send_time: rt::Timestamp,
    /// 1 asks for a status update at once.
    pub reply_requested: u8,
}

/// The values of `PrimaryKeepalive::reply_requested`.
pub mod primary_keepalive_reply_requested {
    /// No reply is needed.
    pub const NO_REPLY_IS_NEEDED: u8 = 0;
    /// Reply at once.
    pub const REPLY_AT_ONCE: u8 = 1;
}

impl PrimaryKeepalive {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"k")?;
        let wal_end = r.number::<rt::Lsn>("wal_end")?;
        let send_time = r.number::<rt::Timestamp>("send_time")?;
        let reply_requested = r.one_of::<u8>("reply_requested", &[0, 1])?;
        Ok(Self {
            wal_end,
            send_time,
            reply_requested,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"k")?;
        w.number(self.wal_end)?;
        w.number(self.send_time)?;
        w.one_of("reply_requested", self.reply_requested, &[0, 1])?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for PrimaryKeepalive {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("wal_end", &self.wal_end);
        json.field("send_time", &self.send_time);
        json.field("reply_requested", &self.reply_requested);
        json.close('}');
    }
}

/// Answers a status request: how far the primary has come.
///
/// PostgreSQL 19 and newer, sent by the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryStatusUpdate {
    /// Latest WAL position of the primary.
    pub lsn: rt::Lsn,
    /// Oldest transaction that is committing on the primary.
    pub oldest_full_xid: u64,
    /// Next transaction ID to be assigned.
    pub next_full_xid: u64,
    /// The server's clock when it sent this, in microseconds since 2000-01-01 UTC.
    pub send_time: rt::Timestamp,
}

impl PrimaryStatusUpdate {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"s")?;
        let lsn = r.number::<rt::Lsn>("lsn")?;
        let oldest_full_xid = r.number::<u64>("oldest_full_xid")?;
        let next_full_xid = r.number::<u64>("next_full_xid")?;
        let send_time = r.number::<rt::Timestamp>("send_time")?;
        Ok(Self {
            lsn,
            oldest_full_xid,
            next_full_xid,
            send_time,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"s")?;
        w.number(self.lsn)?;
        w.number(self.oldest_full_xid)?;
        w.number(self.next_full_xid)?;
        w.number(self.send_time)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for PrimaryStatusUpdate {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("lsn", &self.lsn);
        json.field("oldest_full_xid", &self.oldest_full_xid);
        json.field("next_full_xid", &self.next_full_xid);
        json.field("send_time", &self.send_time);
        json.close('}');
    }
}

/// Confirms what the client has received and made durable.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandbyStatusUpdate {
    /// LSN after the last byte received.
    pub write_lsn: rt::Lsn,
    /// LSN after the last byte made durable; only this moves the slot.
    pub flush_lsn: rt::Lsn,
    /// LSN after the last byte applied.
    pub apply_lsn: rt::Lsn,
    /// The client's clock when it sent this, in microseconds since 2000-01-01 UTC.
    pub send_time: rt::Timestamp,
    /// 1 asks the server for a keepalive at once.
    pub reply_requested: u8,
}

/// The values of `StandbyStatusUpdate::reply_requested`.
pub mod standby_status_update_reply_requested {
    /// No reply is needed.
    pub const NO_REPLY_IS_NEEDED: u8 = 0;
    /// Reply at once.
    pub const REPLY_AT_ONCE: u8 = 1;
}

impl StandbyStatusUpdate {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"r")?;
        let write_lsn = r.number::<rt::Lsn>("write_lsn")?;
        let flush_lsn = r.number::<rt::Lsn>("flush_lsn")?;
        let apply_lsn = r.number::<rt::Lsn>("apply_lsn")?;
        let send_time = r.number::<rt::Timestamp>("send_time")?;
        let reply_requested = r.one_of::<u8>("reply_requested", &[0, 1])?;
        Ok(Self {
            write_lsn,
            flush_lsn,
            apply_lsn,
            send_time,
            reply_requested,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"r")?;
        w.number(self.write_lsn)?;
        w.number(self.flush_lsn)?;
        w.number(self.apply_lsn)?;
        w.number(self.send_time)?;
        w.one_of("reply_requested", self.reply_requested, &[0, 1])?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for StandbyStatusUpdate {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("write_lsn", &self.write_lsn);
        json.field("flush_lsn", &self.flush_lsn);
        json.field("apply_lsn", &self.apply_lsn);
        json.field("send_time", &self.send_time);
        json.field("reply_requested", &self.reply_requested);
        json.close('}');
    }
}

/// Reports which transactions a standby still needs.
///
/// PostgreSQL 10 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HotStandbyFeedback {
    /// The client's clock when it sent this, in microseconds since 2000-01-01 UTC.
    pub send_time: rt::Timestamp,
    /// Oldest transaction the standby needs, 0 when it needs none.
    pub xmin: u32,
    /// Epoch of xmin.
    pub xmin_epoch: u32,
    /// Oldest transaction its slots need in catalogs, 0 when they need none.
    pub catalog_xmin: u32,
    /// Epoch of catalog_xmin.
    pub catalog_xmin_epoch: u32,
}

impl HotStandbyFeedback {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"h")?;
        let send_time = r.number::<rt::Timestamp>("send_time")?;
        let xmin = r.number::<u32>("xmin")?;
        let xmin_epoch = r.number::<u32>("xmin_epoch")?;
        let catalog_xmin = r.number::<u32>("catalog_xmin")?;
        let catalog_xmin_epoch = r.number::<u32>("catalog_xmin_epoch")?;
        Ok(Self {
            send_time,
            xmin,
            xmin_epoch,
            catalog_xmin,
            catalog_xmin_epoch,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"h")?;
        w.number(self.send_time)?;
        w.number(self.xmin)?;
        w.number(self.xmin_epoch)?;
        w.number(self.catalog_xmin)?;
        w.number(self.catalog_xmin_epoch)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for HotStandbyFeedback {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("send_time", &self.send_time);
        json.field("xmin", &self.xmin);
        json.field("xmin_epoch", &self.xmin_epoch);
        json.field("catalog_xmin", &self.catalog_xmin);
        json.field("catalog_xmin_epoch", &self.catalog_xmin_epoch);
        json.close('}');
    }
}

/// Asks the primary for a status update.
///
/// PostgreSQL 19 and newer, sent by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryStatusRequest {
    /// The client's clock when it sent this, in microseconds since 2000-01-01 UTC.
    pub send_time: rt::Timestamp,
}

impl PrimaryStatusRequest {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"p")?;
        let send_time = r.number::<rt::Timestamp>("send_time")?;
        Ok(Self { send_time })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"p")?;
        w.number(self.send_time)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for PrimaryStatusRequest {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("send_time", &self.send_time);
        json.close('}');
    }
}

/// Any of the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A piece of WAL; in logical replication, one message. PostgreSQL 19 calls it WALData.
    XLogData(XLogData<'a>),
    /// Reports how far the server has read its WAL.
    PrimaryKeepalive(PrimaryKeepalive),
    /// Answers a status request: how far the primary has come.
    PrimaryStatusUpdate(PrimaryStatusUpdate),
    /// Confirms what the client has received and made durable.
    StandbyStatusUpdate(StandbyStatusUpdate),
    /// Reports which transactions a standby still needs.
    HotStandbyFeedback(HotStandbyFeedback),
    /// Asks the primary for a status update.
    PrimaryStatusRequest(PrimaryStatusRequest),
}

impl Frame<'_> {
    /// The names of the messages, in the order of the specification.
    pub const NAMES: [&'static str; 6] = [
        "XLogData",
        "PrimaryKeepalive",
        "PrimaryStatusUpdate",
        "StandbyStatusUpdate",
        "HotStandbyFeedback",
        "PrimaryStatusRequest",
    ];

    /// Return the index of its name in `NAMES`.
    pub fn index(&self) -> usize {
        match self {
            Self::XLogData(_) => 0,
            Self::PrimaryKeepalive(_) => 1,
            Self::PrimaryStatusUpdate(_) => 2,
            Self::StandbyStatusUpdate(_) => 3,
            Self::HotStandbyFeedback(_) => 4,
            Self::PrimaryStatusRequest(_) => 5,
        }
    }

    /// Return its name.
    pub fn name(&self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// Return it as JSON, as the golden vectors have it.
    pub fn to_json(&self, layout: &Layout) -> String {
        let mut json = rt::Json::new(layout);
        match self {
            Self::XLogData(message) => json.message(self.name(), message),
            Self::PrimaryKeepalive(message) => json.message(self.name(), message),
            Self::PrimaryStatusUpdate(message) => json.message(self.name(), message),
            Self::StandbyStatusUpdate(message) => json.message(self.name(), message),
            Self::HotStandbyFeedback(message) => json.message(self.name(), message),
            Self::PrimaryStatusRequest(message) => json.message(self.name(), message),
        }
        json.finish()
    }
}

/// Build a message.
pub fn build(message: &Frame<'_>, layout: &Layout) -> rt::Result<Vec<u8>> {
    let mut w = rt::Writer::new();
    let _ = layout;
    match message {
        Frame::XLogData(message) => rt::inside("XLogData", message.write(&mut w))?,
        Frame::PrimaryKeepalive(message) => rt::inside("PrimaryKeepalive", message.write(&mut w))?,
        Frame::PrimaryStatusUpdate(message) => {
            rt::inside("PrimaryStatusUpdate", message.write(&mut w))?
        }
        Frame::StandbyStatusUpdate(message) => {
            rt::inside("StandbyStatusUpdate", message.write(&mut w))?
        }
        Frame::HotStandbyFeedback(message) => {
            rt::inside("HotStandbyFeedback", message.write(&mut w))?
        }
        Frame::PrimaryStatusRequest(message) => {
            rt::inside("PrimaryStatusRequest", message.write(&mut w))?
        }
    }
    Ok(w.finish())
}

/// Parse a message. Truncated, trailing or unknown bytes, values that are not defined, and messages
/// that are not sent under these options are errors, with the path of the field and the offset.
pub fn parse<'a>(payload: &'a [u8], layout: &Layout) -> rt::Result<Frame<'a>> {
    let mut r = rt::Reader::new(payload);
    let _ = layout;
    let message = match r.first()? {
        b'w' => {
            let found = XLogData::read(&mut r);
            let message = rt::inside("XLogData", found)?;
            Frame::XLogData(message)
        }
        b'k' => {
            let found = PrimaryKeepalive::read(&mut r);
            let message = rt::inside("PrimaryKeepalive", found)?;
            Frame::PrimaryKeepalive(message)
        }
        b's' => {
            let found = PrimaryStatusUpdate::read(&mut r);
            let message = rt::inside("PrimaryStatusUpdate", found)?;
            Frame::PrimaryStatusUpdate(message)
        }
        b'r' => {
            let found = StandbyStatusUpdate::read(&mut r);
            let message = rt::inside("StandbyStatusUpdate", found)?;
            Frame::StandbyStatusUpdate(message)
        }
        b'h' => {
            let found = HotStandbyFeedback::read(&mut r);
            let message = rt::inside("HotStandbyFeedback", found)?;
            Frame::HotStandbyFeedback(message)
        }
        b'p' => {
            let found = PrimaryStatusRequest::read(&mut r);
            let message = rt::inside("PrimaryStatusRequest", found)?;
            Frame::PrimaryStatusRequest(message)
        }
        _ => return Err(rt::Error::unknown_tag()),
    };
    rt::inside(message.name(), r.end())?;
    Ok(message)
}
