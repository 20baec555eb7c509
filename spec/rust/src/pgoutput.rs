// Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

//! Logical replication messages: what they hold, and how they are read and built.
//!
//! Source: PostgreSQL's documentation, protocol-logicalrep-message-formats.

use alloc::{string::String, vec::Vec};

use crate::runtime as rt;

/// What determines the layout of a message besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The option proto_version of START_REPLICATION.
    pub proto_version: u32,
    /// A state: between Stream Start and Stream Stop.
    pub in_stream: bool,
    /// The option streaming is set to 'parallel'.
    pub parallel: bool,
    /// Whether the option streaming was requested.
    pub has_streaming: bool,
}

/// How transactions are sent that are still running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streaming {
    /// After their commit.
    #[default]
    Off,
    /// In segments while they run.
    On,
    /// In segments while they run, with the fields for applying them in parallel.
    Parallel,
}

/// The options on which layouts depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The protocol version.
    pub proto_version: u32,
    /// How transactions are sent that are still running.
    pub streaming: Streaming,
}

impl Default for Options {
    fn default() -> Self {
        Self::new(1)
    }
}

impl Options {
    /// Return the options of a protocol version, all others by default.
    pub fn new(proto_version: u32) -> Self {
        Self {
            proto_version,
            streaming: Streaming::default(),
        }
    }

    /// Set an option by its name. A name that determines no layout, or a value that the option does
    /// not have, is an error; whether a server accepts them together, `check` says.
    pub fn set(&mut self, name: &str, value: &str) -> rt::Result<()> {
        match (name, value) {
            ("proto_version", _) => self.proto_version = rt::option_number(name, value)?,
            ("streaming", "off") => self.streaming = Streaming::Off,
            ("streaming", "on") => self.streaming = Streaming::On,
            ("streaming", "parallel") => self.streaming = Streaming::Parallel,
            _ => return Err(rt::unknown_option(name)),
        }
        Ok(())
    }

    /// Check that a server accepts them: each version knows some options and values only.
    pub fn check(&self) -> rt::Result<()> {
        rt::known_version(self.proto_version, &[1, 2, 3, 4])?;
        if self.streaming == Streaming::On {
            rt::option_since("streaming", self.proto_version, 2)?;
        }
        if self.streaming == Streaming::Parallel {
            rt::option_since("streaming", self.proto_version, 4)?;
        }
        Ok(())
    }

    /// Return the layout of messages under these options, in a state of the stream: `sets` are the
    /// parameters that it sets, as bits; 0 if it sets none.
    pub fn layout(&self, sets: u64) -> Layout {
        Layout {
            proto_version: self.proto_version,
            in_stream: sets & IN_STREAM != 0,
            parallel: self.streaming == Streaming::Parallel,
            has_streaming: self.streaming != Streaming::default(),
        }
    }
}

/// The states of a stream, the initial one first.
pub const STATES: &[&str] = &[
    // Between transactions.
    "idle",
    // Between Begin and Commit.
    "transaction",
    // Between Begin Prepare and Prepare.
    "preparing",
    // Between Stream Start and Stream Stop.
    "stream",
];

/// The bit of a parameter that states set. A state: between Stream Start and Stream Stop.
pub const IN_STREAM: u64 = 1;

/// The names of these parameters, by the number of their bits.
pub const STATE_PARAMETERS: &[&str] = &["in_stream"];

/// The parameters that each state sets, as bits.
const SETS: &[u64] = &[0, 0, 0, 1];

/// The states in which each message is permitted, each with the one that follows.
const TRANSITIONS: &[&[(u8, u8)]] = &[
    // Begin
    &[(0, 1)],
    // Message
    &[(0, 0), (1, 1), (2, 2), (3, 3)],
    // Commit
    &[(1, 0)],
    // Origin
    &[(1, 1), (2, 2), (3, 3)],
    // Relation
    &[(1, 1), (2, 2), (3, 3)],
    // Type
    &[(1, 1), (2, 2), (3, 3)],
    // Insert
    &[(1, 1), (2, 2), (3, 3)],
    // Update
    &[(1, 1), (2, 2), (3, 3)],
    // Delete
    &[(1, 1), (2, 2), (3, 3)],
    // Truncate
    &[(1, 1), (2, 2), (3, 3)],
    // StreamStart
    &[(0, 3)],
    // StreamStop
    &[(3, 0)],
    // StreamCommit
    &[(0, 0)],
    // StreamAbort
    &[(0, 0)],
    // BeginPrepare
    &[(0, 2)],
    // Prepare
    &[(0, 0), (2, 0)],
    // CommitPrepared
    &[(0, 0)],
    // RollbackPrepared
    &[(0, 0)],
    // StreamPrepare
    &[(0, 0)],
];

/// The messages of one connection in their order: parses and builds them by the state of the
/// stream.
#[derive(Clone, Debug)]
pub struct Session {
    options: Options,
    state: rt::StreamState,
}

impl Session {
    /// Start a session; options that a server refuses are an error.
    pub fn new(options: Options) -> rt::Result<Self> {
        options.check()?;
        let state = rt::StreamState::new(SETS, TRANSITIONS);
        Ok(Self { options, state })
    }

    /// Return the layout of the next message.
    pub fn layout(&self) -> Layout {
        self.options.layout(self.state.sets())
    }

    /// Parse the next message; an error leaves the state unchanged.
    pub fn parse<'a>(&mut self, payload: &'a [u8]) -> rt::Result<PgoutputMessage<'a>> {
        let message = parse(payload, &self.layout())?;
        self.state.advance(message.index(), message.name())?;
        Ok(message)
    }

    /// Build the next message; an error leaves the state unchanged.
    pub fn build(&mut self, message: &PgoutputMessage<'_>) -> rt::Result<Vec<u8>> {
        let payload = build(message, &self.layout())?;
        self.state.advance(message.index(), message.name())?;
        Ok(payload)
    }
}

/// The format of the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TupleDataValue<'a> {
    /// NULL.
    Null,
    /// An unchanged TOASTed value, which is not sent.
    Unchanged,
    /// The value as text, by its type's output function.
    Text(&'a [u8]),
    /// The value as binary, by its type's send function; under the option binary.
    Binary(&'a [u8]),
}

impl<'a> TupleDataValue<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        Ok(match r.tag("", b"nutb")? {
            b'n' => Self::Null,
            b'u' => Self::Unchanged,
            b't' => Self::Text(read_tuple_data_value_text(r)?),
            _ => Self::Binary(read_tuple_data_value_binary(r)?),
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        match self {
            Self::Null => w.bytes(b"n")?,
            Self::Unchanged => w.bytes(b"u")?,
            Self::Text(value) => {
                w.bytes(b"t")?;
                write_tuple_data_value_text(value, w)?;
            }
            Self::Binary(value) => {
                w.bytes(b"b")?;
                write_tuple_data_value_binary(value, w)?;
            }
        }
        Ok(())
    }

    /// Return the tag.
    pub fn kind(&self) -> rt::Letter {
        match self {
            Self::Null => rt::Letter(b'n'),
            Self::Unchanged => rt::Letter(b'u'),
            Self::Text(_) => rt::Letter(b't'),
            Self::Binary(_) => rt::Letter(b'b'),
        }
    }
}

impl rt::ToJson<Layout> for TupleDataValue<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        match self {
            Self::Null => json.null(),
            Self::Unchanged => json.marker("unchanged"),
            Self::Text(value) => json.text_or_hex("text", value),
            Self::Binary(value) => json.hex("binary", value),
        }
    }
}

fn read_tuple_data_value_text<'a>(r: &mut rt::Reader<'a>) -> rt::Result<&'a [u8]> {
    let length = r.number::<u32>("length")?;
    let data = r.bytes("data", length)?;
    Ok(data)
}

fn write_tuple_data_value_text(value: &[u8], w: &mut rt::Writer) -> rt::Result<()> {
    w.size::<u32>("length", value.len())?;
    w.bytes(value)?;
    Ok(())
}

fn read_tuple_data_value_binary<'a>(r: &mut rt::Reader<'a>) -> rt::Result<&'a [u8]> {
    let length = r.number::<u32>("length")?;
    let data = r.bytes("data", length)?;
    Ok(data)
}

fn write_tuple_data_value_binary(value: &[u8], w: &mut rt::Writer) -> rt::Result<()> {
    w.size::<u32>("length", value.len())?;
    w.bytes(value)?;
    Ok(())
}

/// The values of one row, or of its key.
pub type TupleData<'a> = Vec<TupleDataValue<'a>>;

fn read_tuple_data<'a>(r: &mut rt::Reader<'a>) -> rt::Result<Vec<TupleDataValue<'a>>> {
    let column_count = r.number::<u16>("column_count")?;
    let columns = r.items("columns", column_count, TupleDataValue::read)?;
    Ok(columns)
}

fn write_tuple_data(value: &[TupleDataValue<'_>], w: &mut rt::Writer) -> rt::Result<()> {
    w.size::<u16>("column_count", value.len())?;
    for (index, item) in value.iter().enumerate() {
        rt::item("columns", index, item.write(w))?;
    }
    Ok(())
}

/// Opens a transaction that has committed; its changes follow.
///
/// PostgreSQL 10 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begin {
    /// LSN of the commit record, the same as Commit's commit_lsn.
    pub final_lsn: rt::Lsn,
    /// Time of the commit, in microseconds since 2000-01-01 UTC.
    pub commit_time: rt::Timestamp,
    /// Transaction ID.
    pub xid: u32,
}

impl Begin {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"B")?;
        let final_lsn = r.number::<rt::Lsn>("final_lsn")?;
        let commit_time = r.number::<rt::Timestamp>("commit_time")?;
        let xid = r.number::<u32>("xid")?;
        Ok(Self {
            final_lsn,
            commit_time,
            xid,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"B")?;
        w.number(self.final_lsn)?;
        w.number(self.commit_time)?;
        w.number(self.xid)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Begin {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("final_lsn", &self.final_lsn);
        json.field("commit_time", &self.commit_time);
        json.field("xid", &self.xid);
        json.close('}');
    }
}

/// A message written by pg_logical_emit_message(), sent when the option messages is on.
///
/// PostgreSQL 14 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Top-level transaction ID, present only inside a stream.
    pub xid: Option<u32>,
    /// Bit 1 is set when the message belongs to a transaction.
    pub flags: u8,
    /// LSN of the message.
    pub lsn: rt::Lsn,
    /// Prefix given by the writer.
    pub prefix: rt::Text<'a>,
    /// Content given by the writer, never converted to the client's encoding.
    pub content: &'a [u8],
}

/// The bits of `Message::flags`.
pub mod message_flags {
    /// Transactional.
    pub const TRANSACTIONAL: u8 = 1;
}

impl<'a> Message<'a> {
    fn read(r: &mut rt::Reader<'a>, layout: &Layout) -> rt::Result<Self> {
        r.constant("tag", b"M")?;
        let xid = if layout.proto_version >= 2 && layout.in_stream {
            Some(r.number::<u32>("xid")?)
        } else {
            None
        };
        let flags = r.bits::<u8>("flags", 0x1)?;
        let lsn = r.number::<rt::Lsn>("lsn")?;
        let prefix = r.text("prefix")?;
        let content_length = r.number::<u32>("content_length")?;
        let content = r.bytes("content", content_length)?;
        Ok(Self {
            xid,
            flags,
            lsn,
            prefix,
            content,
        })
    }

    fn write(&self, w: &mut rt::Writer, layout: &Layout) -> rt::Result<()> {
        w.bytes(b"M")?;
        if layout.proto_version >= 2 && layout.in_stream {
            let value = rt::present("xid", &self.xid)?;
            w.number(*value)?;
        } else {
            rt::absent("xid", &self.xid)?;
        }
        w.bits("flags", self.flags, 0x1)?;
        w.number(self.lsn)?;
        w.text("prefix", &self.prefix)?;
        w.size::<u32>("content_length", self.content.len())?;
        w.bytes(self.content)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Message<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("xid", &self.xid);
        json.field("flags", &self.flags);
        json.field("lsn", &self.lsn);
        json.field("prefix", &self.prefix);
        json.field("content", &self.content);
        json.close('}');
    }
}

/// Ends a transaction.
///
/// PostgreSQL 10 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// LSN at which the commit record starts.
    pub commit_lsn: rt::Lsn,
    /// LSN after the commit record: the position to confirm.
    pub end_lsn: rt::Lsn,
    /// Time of the commit, in microseconds since 2000-01-01 UTC.
    pub commit_time: rt::Timestamp,
}

impl Commit {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"C")?;
        r.constant("flags", &[0])?;
        let commit_lsn = r.number::<rt::Lsn>("commit_lsn")?;
        let end_lsn = r.number::<rt::Lsn>("end_lsn")?;
        let commit_time = r.number::<rt::Timestamp>("commit_time")?;
        Ok(Self {
            commit_lsn,
            end_lsn,
            commit_time,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"C")?;
        w.bytes(&[0])?;
        w.number(self.commit_lsn)?;
        w.number(self.end_lsn)?;
        w.number(self.commit_time)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Commit {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("commit_lsn", &self.commit_lsn);
        json.field("end_lsn", &self.end_lsn);
        json.field("commit_time", &self.commit_time);
        json.close('}');
    }
}

/// Names the replication origin of the transaction that has just begun.
///
/// PostgreSQL 10 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// LSN of the transaction's commit on its origin, 0/0 inside a stream.
    pub origin_lsn: rt::Lsn,
    /// Name of the origin.
    pub name: rt::Text<'a>,
}

impl<'a> Origin<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"O")?;
        let origin_lsn = r.number::<rt::Lsn>("origin_lsn")?;
        let name = r.text("name")?;
        Ok(Self { origin_lsn, name })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"O")?;
        w.number(self.origin_lsn)?;
        w.text("name", &self.name)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Origin<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("origin_lsn", &self.origin_lsn);
        json.field("name", &self.name);
        json.close('}');
    }
}

/// One published column of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationColumn<'a> {
    /// Bit 1 is set when the column is part of the replica identity.
    pub flags: u8,
    /// Name of the column.
    pub name: rt::Text<'a>,
    /// OID of the column's type.
    pub type_oid: u32,
    /// Type modifier, as atttypmod in pg_attribute; -1 for none.
    pub type_modifier: i32,
}

/// The bits of `RelationColumn::flags`.
pub mod relation_column_flags {
    /// Key.
    pub const KEY: u8 = 1;
}

impl<'a> RelationColumn<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        let flags = r.bits::<u8>("flags", 0x1)?;
        let name = r.text("name")?;
        let type_oid = r.number::<u32>("type_oid")?;
        let type_modifier = r.number::<i32>("type_modifier")?;
        Ok(Self {
            flags,
            name,
            type_oid,
            type_modifier,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bits("flags", self.flags, 0x1)?;
        w.text("name", &self.name)?;
        w.number(self.type_oid)?;
        w.number(self.type_modifier)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for RelationColumn<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("flags", &self.flags);
        json.field("name", &self.name);
        json.field("type_oid", &self.type_oid);
        json.field("type_modifier", &self.type_modifier);
        json.close('}');
    }
}

/// Describes a table before its first change.
///
/// PostgreSQL 10 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation<'a> {
    /// Transaction or subtransaction ID, present only inside a stream.
    pub xid: Option<u32>,
    /// OID of the table.
    pub relation_oid: u32,
    /// Schema of the table, empty for pg_catalog.
    pub namespace: rt::Text<'a>,
    /// Name of the table.
    pub name: rt::Text<'a>,
    /// Replica identity setting, as relreplident in pg_class.
    pub replica_identity: rt::Letter,
    /// One published column of the table.
    pub columns: Vec<RelationColumn<'a>>,
}

/// The values of `Relation::replica_identity`.
pub mod relation_replica_identity {
    use crate::runtime as rt;

    /// Default.
    pub const DEFAULT: rt::Letter = rt::Letter(b'd');
    /// Nothing.
    pub const NOTHING: rt::Letter = rt::Letter(b'n');
    /// Full.
    pub const FULL: rt::Letter = rt::Letter(b'f');
    /// Index.
    pub const INDEX: rt::Letter = rt::Letter(b'i');
}

impl<'a> Relation<'a> {
    fn read(r: &mut rt::Reader<'a>, layout: &Layout) -> rt::Result<Self> {
        r.constant("tag", b"R")?;
        let xid = if layout.proto_version >= 2 && layout.in_stream {
            Some(r.number::<u32>("xid")?)
        } else {
            None
        };
        let relation_oid = r.number::<u32>("relation_oid")?;
        let namespace = r.text("namespace")?;
        let name = r.text("name")?;
        let replica_identity = r.letter("replica_identity", b"dnfi")?;
        let column_count = r.number::<u16>("column_count")?;
        let columns = r.items("columns", column_count, RelationColumn::read)?;
        Ok(Self {
            xid,
            relation_oid,
            namespace,
            name,
            replica_identity,
            columns,
        })
    }

    fn write(&self, w: &mut rt::Writer, layout: &Layout) -> rt::Result<()> {
        w.bytes(b"R")?;
        if layout.proto_version >= 2 && layout.in_stream {
            let value = rt::present("xid", &self.xid)?;
            w.number(*value)?;
        } else {
            rt::absent("xid", &self.xid)?;
        }
        w.number(self.relation_oid)?;
        w.text("namespace", &self.namespace)?;
        w.text("name", &self.name)?;
        w.letter("replica_identity", self.replica_identity, b"dnfi")?;
        w.size::<u16>("column_count", self.columns.len())?;
        for (index, item) in self.columns.iter().enumerate() {
            rt::item("columns", index, item.write(w))?;
        }
        Ok(())
    }
}

impl rt::ToJson<Layout> for Relation<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("xid", &self.xid);
        json.field("relation_oid", &self.relation_oid);
        json.field("namespace", &self.namespace);
        json.field("name", &self.name);
        json.field("replica_identity", &self.replica_identity);
        json.field("columns", &self.columns);
        json.close('}');
    }
}

/// Names a type that is not built in, before the Relation that uses it.
///
/// PostgreSQL 10 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type<'a> {
    /// Transaction or subtransaction ID, present only inside a stream.
    pub xid: Option<u32>,
    /// OID of the type.
    pub type_oid: u32,
    /// Schema of the type, empty for pg_catalog.
    pub namespace: rt::Text<'a>,
    /// Name of the type; for a domain, of its base type.
    pub name: rt::Text<'a>,
}

impl<'a> Type<'a> {
    fn read(r: &mut rt::Reader<'a>, layout: &Layout) -> rt::Result<Self> {
        r.constant("tag", b"Y")?;
        let xid = if layout.proto_version >= 2 && layout.in_stream {
            Some(r.number::<u32>("xid")?)
        } else {
            None
        };
        let type_oid = r.number::<u32>("type_oid")?;
        let namespace = r.text("namespace")?;
        let name = r.text("name")?;
        Ok(Self {
            xid,
            type_oid,
            namespace,
            name,
        })
    }

    fn write(&self, w: &mut rt::Writer, layout: &Layout) -> rt::Result<()> {
        w.bytes(b"Y")?;
        if layout.proto_version >= 2 && layout.in_stream {
            let value = rt::present("xid", &self.xid)?;
            w.number(*value)?;
        } else {
            rt::absent("xid", &self.xid)?;
        }
        w.number(self.type_oid)?;
        w.text("namespace", &self.namespace)?;
        w.text("name", &self.name)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Type<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("xid", &self.xid);
        json.field("type_oid", &self.type_oid);
        json.field("namespace", &self.namespace);
        json.field("name", &self.name);
        json.close('}');
    }
}

/// A new row.
///
/// PostgreSQL 10 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Insert<'a> {
    /// Transaction or subtransaction ID, present only inside a stream.
    pub xid: Option<u32>,
    /// OID of a table that a Relation has described.
    pub relation_oid: u32,
    /// Values of the new row, in the order of the Relation's columns.
    pub new: TupleData<'a>,
}

impl<'a> Insert<'a> {
    fn read(r: &mut rt::Reader<'a>, layout: &Layout) -> rt::Result<Self> {
        r.constant("tag", b"I")?;
        let xid = if layout.proto_version >= 2 && layout.in_stream {
            Some(r.number::<u32>("xid")?)
        } else {
            None
        };
        let relation_oid = r.number::<u32>("relation_oid")?;
        r.constant("new_tag", b"N")?;
        let new = rt::inside("new", read_tuple_data(r))?;
        Ok(Self {
            xid,
            relation_oid,
            new,
        })
    }

    fn write(&self, w: &mut rt::Writer, layout: &Layout) -> rt::Result<()> {
        w.bytes(b"I")?;
        if layout.proto_version >= 2 && layout.in_stream {
            let value = rt::present("xid", &self.xid)?;
            w.number(*value)?;
        } else {
            rt::absent("xid", &self.xid)?;
        }
        w.number(self.relation_oid)?;
        w.bytes(b"N")?;
        rt::inside("new", write_tuple_data(&self.new, w))?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Insert<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("xid", &self.xid);
        json.field("relation_oid", &self.relation_oid);
        json.field("new", &self.new);
        json.close('}');
    }
}

/// The row before the change: the whole row, or its key where that changed or is TOASTed, or
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateOld<'a> {
    /// The old key; columns outside the key are null.
    Key(TupleData<'a>),
    /// The whole old row, under REPLICA IDENTITY FULL.
    Row(TupleData<'a>),
}

impl<'a> UpdateOld<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        Ok(match r.tag("old_kind", b"KO")? {
            b'K' => Self::Key(rt::inside("old", read_tuple_data(r))?),
            _ => Self::Row(rt::inside("old", read_tuple_data(r))?),
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        match self {
            Self::Key(value) => {
                w.bytes(b"K")?;
                rt::inside("old", write_tuple_data(value, w))?;
            }
            Self::Row(value) => {
                w.bytes(b"O")?;
                rt::inside("old", write_tuple_data(value, w))?;
            }
        }
        Ok(())
    }

    /// Return the tag.
    pub fn kind(&self) -> rt::Letter {
        match self {
            Self::Key(_) => rt::Letter(b'K'),
            Self::Row(_) => rt::Letter(b'O'),
        }
    }
}

impl rt::ToJson<Layout> for UpdateOld<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        match self {
            Self::Key(value) => value.json(json),
            Self::Row(value) => value.json(json),
        }
    }
}

/// A changed row.
///
/// PostgreSQL 10 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update<'a> {
    /// Transaction or subtransaction ID, present only inside a stream.
    pub xid: Option<u32>,
    /// OID of a table that a Relation has described.
    pub relation_oid: u32,
    /// The row before the change: the whole row, or its key where that changed or is TOASTed, or
    /// nothing.
    pub old: Option<UpdateOld<'a>>,
    /// Values of the new row, in the order of the Relation's columns.
    pub new: TupleData<'a>,
}

impl<'a> Update<'a> {
    fn read(r: &mut rt::Reader<'a>, layout: &Layout) -> rt::Result<Self> {
        r.constant("tag", b"U")?;
        let xid = if layout.proto_version >= 2 && layout.in_stream {
            Some(r.number::<u32>("xid")?)
        } else {
            None
        };
        let relation_oid = r.number::<u32>("relation_oid")?;
        let old = if r.peek() == Some(b'N') {
            None
        } else {
            Some(UpdateOld::read(r)?)
        };
        r.constant("new_tag", b"N")?;
        let new = rt::inside("new", read_tuple_data(r))?;
        Ok(Self {
            xid,
            relation_oid,
            old,
            new,
        })
    }

    fn write(&self, w: &mut rt::Writer, layout: &Layout) -> rt::Result<()> {
        w.bytes(b"U")?;
        if layout.proto_version >= 2 && layout.in_stream {
            let value = rt::present("xid", &self.xid)?;
            w.number(*value)?;
        } else {
            rt::absent("xid", &self.xid)?;
        }
        w.number(self.relation_oid)?;
        if let Some(value) = &self.old {
            value.write(w)?;
        }
        w.bytes(b"N")?;
        rt::inside("new", write_tuple_data(&self.new, w))?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Update<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("xid", &self.xid);
        json.field("relation_oid", &self.relation_oid);
        json.field("old_kind", &self.old.as_ref().map(|value| value.kind()));
        json.field("old", &self.old);
        json.field("new", &self.new);
        json.close('}');
    }
}

/// The removed row: whole, or its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteOld<'a> {
    /// The old key; columns outside the key are null.
    Key(TupleData<'a>),
    /// The whole old row, under REPLICA IDENTITY FULL.
    Row(TupleData<'a>),
}

impl<'a> DeleteOld<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        Ok(match r.tag("old_kind", b"KO")? {
            b'K' => Self::Key(rt::inside("old", read_tuple_data(r))?),
            _ => Self::Row(rt::inside("old", read_tuple_data(r))?),
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        match self {
            Self::Key(value) => {
                w.bytes(b"K")?;
                rt::inside("old", write_tuple_data(value, w))?;
            }
            Self::Row(value) => {
                w.bytes(b"O")?;
                rt::inside("old", write_tuple_data(value, w))?;
            }
        }
        Ok(())
    }

    /// Return the tag.
    pub fn kind(&self) -> rt::Letter {
        match self {
            Self::Key(_) => rt::Letter(b'K'),
            Self::Row(_) => rt::Letter(b'O'),
        }
    }
}

impl rt::ToJson<Layout> for DeleteOld<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        match self {
            Self::Key(value) => value.json(json),
            Self::Row(value) => value.json(json),
        }
    }
}

/// A removed row.
///
/// PostgreSQL 10 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete<'a> {
    /// Transaction or subtransaction ID, present only inside a stream.
    pub xid: Option<u32>,
    /// OID of a table that a Relation has described.
    pub relation_oid: u32,
    /// The removed row: whole, or its key.
    pub old: DeleteOld<'a>,
}

impl<'a> Delete<'a> {
    fn read(r: &mut rt::Reader<'a>, layout: &Layout) -> rt::Result<Self> {
        r.constant("tag", b"D")?;
        let xid = if layout.proto_version >= 2 && layout.in_stream {
            Some(r.number::<u32>("xid")?)
        } else {
            None
        };
        let relation_oid = r.number::<u32>("relation_oid")?;
        let old = DeleteOld::read(r)?;
        Ok(Self {
            xid,
            relation_oid,
            old,
        })
    }

    fn write(&self, w: &mut rt::Writer, layout: &Layout) -> rt::Result<()> {
        w.bytes(b"D")?;
        if layout.proto_version >= 2 && layout.in_stream {
            let value = rt::present("xid", &self.xid)?;
            w.number(*value)?;
        } else {
            rt::absent("xid", &self.xid)?;
        }
        w.number(self.relation_oid)?;
        self.old.write(w)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Delete<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("xid", &self.xid);
        json.field("relation_oid", &self.relation_oid);
        json.field("old_kind", &self.old.kind());
        json.field("old", &self.old);
        json.close('}');
    }
}

/// Tables emptied by one TRUNCATE.
///
/// PostgreSQL 11 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncate {
    /// Transaction or subtransaction ID, present only inside a stream.
    pub xid: Option<u32>,
    /// Bit 1 for CASCADE, bit 2 for RESTART IDENTITY.
    pub options: u8,
    /// One emptied table.
    pub relation_oids: Vec<u32>,
}

/// The bits of `Truncate::options`.
pub mod truncate_options {
    /// Cascade.
    pub const CASCADE: u8 = 1;
    /// Restart identity.
    pub const RESTART_IDENTITY: u8 = 2;
}

impl Truncate {
    fn read(r: &mut rt::Reader<'_>, layout: &Layout) -> rt::Result<Self> {
        r.constant("tag", b"T")?;
        let xid = if layout.proto_version >= 2 && layout.in_stream {
            Some(r.number::<u32>("xid")?)
        } else {
            None
        };
        let relation_count = r.number::<u32>("relation_count")?;
        let options = r.bits::<u8>("options", 0x3)?;
        let relation_oids = r.items("relation_oids", relation_count, |r| r.number::<u32>(""))?;
        Ok(Self {
            xid,
            options,
            relation_oids,
        })
    }

    fn write(&self, w: &mut rt::Writer, layout: &Layout) -> rt::Result<()> {
        w.bytes(b"T")?;
        if layout.proto_version >= 2 && layout.in_stream {
            let value = rt::present("xid", &self.xid)?;
            w.number(*value)?;
        } else {
            rt::absent("xid", &self.xid)?;
        }
        w.size::<u32>("relation_count", self.relation_oids.len())?;
        w.bits("options", self.options, 0x3)?;
        for (index, item) in self.relation_oids.iter().enumerate() {
            rt::item("relation_oids", index, w.number(*item))?;
        }
        Ok(())
    }
}

impl rt::ToJson<Layout> for Truncate {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("xid", &self.xid);
        json.field("options", &self.options);
        json.field("relation_oids", &self.relation_oids);
        json.close('}');
    }
}

/// Opens one segment of a transaction that is still running.
///
/// PostgreSQL 14 and newer, protocol version 2 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStart {
    /// Top-level transaction ID.
    pub xid: u32,
    /// 1 for the transaction's first segment and 0 for the others.
    pub first_segment: u8,
}

/// The values of `StreamStart::first_segment`.
pub mod stream_start_first_segment {
    /// Later segment.
    pub const LATER_SEGMENT: u8 = 0;
    /// First segment.
    pub const FIRST_SEGMENT: u8 = 1;
}

impl StreamStart {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"S")?;
        let xid = r.number::<u32>("xid")?;
        let first_segment = r.one_of::<u8>("first_segment", &[0, 1])?;
        Ok(Self { xid, first_segment })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"S")?;
        w.number(self.xid)?;
        w.one_of("first_segment", self.first_segment, &[0, 1])?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for StreamStart {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("xid", &self.xid);
        json.field("first_segment", &self.first_segment);
        json.close('}');
    }
}

/// Ends a segment; others may follow.
///
/// PostgreSQL 14 and newer, protocol version 2 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStop;

impl StreamStop {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"E")?;
        Ok(Self)
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"E")?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for StreamStop {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.close('}');
    }
}

/// Commits a streamed transaction.
///
/// PostgreSQL 14 and newer, protocol version 2 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamCommit {
    /// Top-level transaction ID.
    pub xid: u32,
    /// LSN at which the commit record starts.
    pub commit_lsn: rt::Lsn,
    /// LSN after the commit record: the position to confirm.
    pub end_lsn: rt::Lsn,
    /// Time of the commit, in microseconds since 2000-01-01 UTC.
    pub commit_time: rt::Timestamp,
}

impl StreamCommit {
    fn read(r: &mut rt::Reader<'_>) -> rt::Result<Self> {
        r.constant("tag", b"c")?;
        let xid = r.number::<u32>("xid")?;
        r.constant("flags", &[0])?;
        let commit_lsn = r.number::<rt::Lsn>("commit_lsn")?;
        let end_lsn = r.number::<rt::Lsn>("end_lsn")?;
        let commit_time = r.number::<rt::Timestamp>("commit_time")?;
        Ok(Self {
            xid,
            commit_lsn,
            end_lsn,
            commit_time,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"c")?;
        w.number(self.xid)?;
        w.bytes(&[0])?;
        w.number(self.commit_lsn)?;
        w.number(self.end_lsn)?;
        w.number(self.commit_time)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for StreamCommit {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("xid", &self.xid);
        json.field("commit_lsn", &self.commit_lsn);
        json.field("end_lsn", &self.end_lsn);
        json.field("commit_time", &self.commit_time);
        json.close('}');
    }
}

/// Rolls back a streamed transaction or one of its subtransactions.
///
/// PostgreSQL 14 and newer, protocol version 2 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamAbort {
    /// Top-level transaction ID.
    pub xid: u32,
    /// ID of the transaction that is rolled back: a subtransaction, or the top-level transaction
    /// itself.
    pub subxid: u32,
    /// LSN after the abort record, 0/0 for a transaction lost in a crash.
    pub abort_lsn: Option<rt::Lsn>,
    /// Time of the abort, in microseconds since 2000-01-01 UTC.
    pub abort_time: Option<rt::Timestamp>,
}

impl StreamAbort {
    fn read(r: &mut rt::Reader<'_>, layout: &Layout) -> rt::Result<Self> {
        r.constant("tag", b"A")?;
        let xid = r.number::<u32>("xid")?;
        let subxid = r.number::<u32>("subxid")?;
        let abort_lsn = if layout.proto_version >= 4 && layout.parallel {
            Some(r.number::<rt::Lsn>("abort_lsn")?)
        } else {
            None
        };
        let abort_time = if layout.proto_version >= 4 && layout.parallel {
            Some(r.number::<rt::Timestamp>("abort_time")?)
        } else {
            None
        };
        Ok(Self {
            xid,
            subxid,
            abort_lsn,
            abort_time,
        })
    }

    fn write(&self, w: &mut rt::Writer, layout: &Layout) -> rt::Result<()> {
        w.bytes(b"A")?;
        w.number(self.xid)?;
        w.number(self.subxid)?;
        if layout.proto_version >= 4 && layout.parallel {
            let value = rt::present("abort_lsn", &self.abort_lsn)?;
            w.number(*value)?;
        } else {
            rt::absent("abort_lsn", &self.abort_lsn)?;
        }
        if layout.proto_version >= 4 && layout.parallel {
            let value = rt::present("abort_time", &self.abort_time)?;
            w.number(*value)?;
        } else {
            rt::absent("abort_time", &self.abort_time)?;
        }
        Ok(())
    }
}

impl rt::ToJson<Layout> for StreamAbort {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("xid", &self.xid);
        json.field("subxid", &self.subxid);
        json.field("abort_lsn", &self.abort_lsn);
        json.field("abort_time", &self.abort_time);
        json.close('}');
    }
}

/// Opens a transaction that has been prepared; its changes follow.
///
/// PostgreSQL 15 and newer, protocol version 3 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeginPrepare<'a> {
    /// LSN at which the prepare record starts.
    pub prepare_lsn: rt::Lsn,
    /// LSN after the prepare record.
    pub end_lsn: rt::Lsn,
    /// Time of the prepare, in microseconds since 2000-01-01 UTC.
    pub prepare_time: rt::Timestamp,
    /// Transaction ID.
    pub xid: u32,
    /// Name given in PREPARE TRANSACTION.
    pub gid: rt::Text<'a>,
}

impl<'a> BeginPrepare<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"b")?;
        let prepare_lsn = r.number::<rt::Lsn>("prepare_lsn")?;
        let end_lsn = r.number::<rt::Lsn>("end_lsn")?;
        let prepare_time = r.number::<rt::Timestamp>("prepare_time")?;
        let xid = r.number::<u32>("xid")?;
        let gid = r.text("gid")?;
        Ok(Self {
            prepare_lsn,
            end_lsn,
            prepare_time,
            xid,
            gid,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"b")?;
        w.number(self.prepare_lsn)?;
        w.number(self.end_lsn)?;
        w.number(self.prepare_time)?;
        w.number(self.xid)?;
        w.text("gid", &self.gid)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for BeginPrepare<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("prepare_lsn", &self.prepare_lsn);
        json.field("end_lsn", &self.end_lsn);
        json.field("prepare_time", &self.prepare_time);
        json.field("xid", &self.xid);
        json.field("gid", &self.gid);
        json.close('}');
    }
}

/// Ends the changes of a prepared transaction; without any, PostgreSQL 18 sends no Begin Prepare.
///
/// PostgreSQL 15 and newer, protocol version 3 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare<'a> {
    /// LSN at which the prepare record starts.
    pub prepare_lsn: rt::Lsn,
    /// LSN after the prepare record: the position to confirm.
    pub end_lsn: rt::Lsn,
    /// Time of the prepare, in microseconds since 2000-01-01 UTC.
    pub prepare_time: rt::Timestamp,
    /// Transaction ID.
    pub xid: u32,
    /// Name given in PREPARE TRANSACTION.
    pub gid: rt::Text<'a>,
}

impl<'a> Prepare<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"P")?;
        r.constant("flags", &[0])?;
        let prepare_lsn = r.number::<rt::Lsn>("prepare_lsn")?;
        let end_lsn = r.number::<rt::Lsn>("end_lsn")?;
        let prepare_time = r.number::<rt::Timestamp>("prepare_time")?;
        let xid = r.number::<u32>("xid")?;
        let gid = r.text("gid")?;
        Ok(Self {
            prepare_lsn,
            end_lsn,
            prepare_time,
            xid,
            gid,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"P")?;
        w.bytes(&[0])?;
        w.number(self.prepare_lsn)?;
        w.number(self.end_lsn)?;
        w.number(self.prepare_time)?;
        w.number(self.xid)?;
        w.text("gid", &self.gid)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for Prepare<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("prepare_lsn", &self.prepare_lsn);
        json.field("end_lsn", &self.end_lsn);
        json.field("prepare_time", &self.prepare_time);
        json.field("xid", &self.xid);
        json.field("gid", &self.gid);
        json.close('}');
    }
}

/// Commits a transaction that was prepared earlier.
///
/// PostgreSQL 15 and newer, protocol version 3 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitPrepared<'a> {
    /// LSN at which the commit record starts.
    pub commit_lsn: rt::Lsn,
    /// LSN after the commit record: the position to confirm.
    pub end_lsn: rt::Lsn,
    /// Time of the commit, in microseconds since 2000-01-01 UTC.
    pub commit_time: rt::Timestamp,
    /// Transaction ID.
    pub xid: u32,
    /// Name given in PREPARE TRANSACTION.
    pub gid: rt::Text<'a>,
}

impl<'a> CommitPrepared<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"K")?;
        r.constant("flags", &[0])?;
        let commit_lsn = r.number::<rt::Lsn>("commit_lsn")?;
        let end_lsn = r.number::<rt::Lsn>("end_lsn")?;
        let commit_time = r.number::<rt::Timestamp>("commit_time")?;
        let xid = r.number::<u32>("xid")?;
        let gid = r.text("gid")?;
        Ok(Self {
            commit_lsn,
            end_lsn,
            commit_time,
            xid,
            gid,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"K")?;
        w.bytes(&[0])?;
        w.number(self.commit_lsn)?;
        w.number(self.end_lsn)?;
        w.number(self.commit_time)?;
        w.number(self.xid)?;
        w.text("gid", &self.gid)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for CommitPrepared<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("commit_lsn", &self.commit_lsn);
        json.field("end_lsn", &self.end_lsn);
        json.field("commit_time", &self.commit_time);
        json.field("xid", &self.xid);
        json.field("gid", &self.gid);
        json.close('}');
    }
}

/// Rolls back a transaction that was prepared earlier.
///
/// PostgreSQL 15 and newer, protocol version 3 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollbackPrepared<'a> {
    /// LSN after the prepare record, which tells whether that prepare was received.
    pub prepare_end_lsn: rt::Lsn,
    /// LSN after the rollback record: the position to confirm.
    pub rollback_end_lsn: rt::Lsn,
    /// Time of the prepare, in microseconds since 2000-01-01 UTC.
    pub prepare_time: rt::Timestamp,
    /// Time of the rollback, in microseconds since 2000-01-01 UTC.
    pub rollback_time: rt::Timestamp,
    /// Transaction ID.
    pub xid: u32,
    /// Name given in PREPARE TRANSACTION.
    pub gid: rt::Text<'a>,
}

impl<'a> RollbackPrepared<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"r")?;
        r.constant("flags", &[0])?;
        let prepare_end_lsn = r.number::<rt::Lsn>("prepare_end_lsn")?;
        let rollback_end_lsn = r.number::<rt::Lsn>("rollback_end_lsn")?;
        let prepare_time = r.number::<rt::Timestamp>("prepare_time")?;
        let rollback_time = r.number::<rt::Timestamp>("rollback_time")?;
        let xid = r.number::<u32>("xid")?;
        let gid = r.text("gid")?;
        Ok(Self {
            prepare_end_lsn,
            rollback_end_lsn,
            prepare_time,
            rollback_time,
            xid,
            gid,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"r")?;
        w.bytes(&[0])?;
        w.number(self.prepare_end_lsn)?;
        w.number(self.rollback_end_lsn)?;
        w.number(self.prepare_time)?;
        w.number(self.rollback_time)?;
        w.number(self.xid)?;
        w.text("gid", &self.gid)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for RollbackPrepared<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("prepare_end_lsn", &self.prepare_end_lsn);
        json.field("rollback_end_lsn", &self.rollback_end_lsn);
        json.field("prepare_time", &self.prepare_time);
        json.field("rollback_time", &self.rollback_time);
        json.field("xid", &self.xid);
        json.field("gid", &self.gid);
        json.close('}');
    }
}

/// Ends a streamed transaction that has been prepared.
///
/// PostgreSQL 15 and newer, protocol version 3 and newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamPrepare<'a> {
    /// LSN at which the prepare record starts.
    pub prepare_lsn: rt::Lsn,
    /// LSN after the prepare record: the position to confirm.
    pub end_lsn: rt::Lsn,
    /// Time of the prepare, in microseconds since 2000-01-01 UTC.
    pub prepare_time: rt::Timestamp,
    /// Top-level transaction ID.
    pub xid: u32,
    /// Name given in PREPARE TRANSACTION.
    pub gid: rt::Text<'a>,
}

impl<'a> StreamPrepare<'a> {
    fn read(r: &mut rt::Reader<'a>) -> rt::Result<Self> {
        r.constant("tag", b"p")?;
        r.constant("flags", &[0])?;
        let prepare_lsn = r.number::<rt::Lsn>("prepare_lsn")?;
        let end_lsn = r.number::<rt::Lsn>("end_lsn")?;
        let prepare_time = r.number::<rt::Timestamp>("prepare_time")?;
        let xid = r.number::<u32>("xid")?;
        let gid = r.text("gid")?;
        Ok(Self {
            prepare_lsn,
            end_lsn,
            prepare_time,
            xid,
            gid,
        })
    }

    fn write(&self, w: &mut rt::Writer) -> rt::Result<()> {
        w.bytes(b"p")?;
        w.bytes(&[0])?;
        w.number(self.prepare_lsn)?;
        w.number(self.end_lsn)?;
        w.number(self.prepare_time)?;
        w.number(self.xid)?;
        w.text("gid", &self.gid)?;
        Ok(())
    }
}

impl rt::ToJson<Layout> for StreamPrepare<'_> {
    fn json(&self, json: &mut rt::Json<'_, Layout>) {
        json.open('{');
        json.field("prepare_lsn", &self.prepare_lsn);
        json.field("end_lsn", &self.end_lsn);
        json.field("prepare_time", &self.prepare_time);
        json.field("xid", &self.xid);
        json.field("gid", &self.gid);
        json.close('}');
    }
}

/// Any of the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PgoutputMessage<'a> {
    /// Opens a transaction that has committed; its changes follow.
    Begin(Begin),
    /// A message written by pg_logical_emit_message(), sent when the option messages is on.
    Message(Message<'a>),
    /// Ends a transaction.
    Commit(Commit),
    /// Names the replication origin of the transaction that has just begun.
    Origin(Origin<'a>),
    /// Describes a table before its first change.
    Relation(Relation<'a>),
    /// Names a type that is not built in, before the Relation that uses it.
    Type(Type<'a>),
    /// A new row.
    Insert(Insert<'a>),
    /// A changed row.
    Update(Update<'a>),
    /// A removed row.
    Delete(Delete<'a>),
    /// Tables emptied by one TRUNCATE.
    Truncate(Truncate),
    /// Opens one segment of a transaction that is still running.
    StreamStart(StreamStart),
    /// Ends a segment; others may follow.
    StreamStop(StreamStop),
    /// Commits a streamed transaction.
    StreamCommit(StreamCommit),
    /// Rolls back a streamed transaction or one of its subtransactions.
    StreamAbort(StreamAbort),
    /// Opens a transaction that has been prepared; its changes follow.
    BeginPrepare(BeginPrepare<'a>),
    /// Ends the changes of a prepared transaction; without any, PostgreSQL 18 sends no Begin
    /// Prepare.
    Prepare(Prepare<'a>),
    /// Commits a transaction that was prepared earlier.
    CommitPrepared(CommitPrepared<'a>),
    /// Rolls back a transaction that was prepared earlier.
    RollbackPrepared(RollbackPrepared<'a>),
    /// Ends a streamed transaction that has been prepared.
    StreamPrepare(StreamPrepare<'a>),
}

impl PgoutputMessage<'_> {
    /// The names of the messages, in the order of the specification.
    pub const NAMES: [&'static str; 19] = [
        "Begin",
        "Message",
        "Commit",
        "Origin",
        "Relation",
        "Type",
        "Insert",
        "Update",
        "Delete",
        "Truncate",
        "StreamStart",
        "StreamStop",
        "StreamCommit",
        "StreamAbort",
        "BeginPrepare",
        "Prepare",
        "CommitPrepared",
        "RollbackPrepared",
        "StreamPrepare",
    ];

    /// Return the index of its name in `NAMES`.
    pub fn index(&self) -> usize {
        match self {
            Self::Begin(_) => 0,
            Self::Message(_) => 1,
            Self::Commit(_) => 2,
            Self::Origin(_) => 3,
            Self::Relation(_) => 4,
            Self::Type(_) => 5,
            Self::Insert(_) => 6,
            Self::Update(_) => 7,
            Self::Delete(_) => 8,
            Self::Truncate(_) => 9,
            Self::StreamStart(_) => 10,
            Self::StreamStop(_) => 11,
            Self::StreamCommit(_) => 12,
            Self::StreamAbort(_) => 13,
            Self::BeginPrepare(_) => 14,
            Self::Prepare(_) => 15,
            Self::CommitPrepared(_) => 16,
            Self::RollbackPrepared(_) => 17,
            Self::StreamPrepare(_) => 18,
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
            Self::Begin(message) => json.message(self.name(), message),
            Self::Message(message) => json.message(self.name(), message),
            Self::Commit(message) => json.message(self.name(), message),
            Self::Origin(message) => json.message(self.name(), message),
            Self::Relation(message) => json.message(self.name(), message),
            Self::Type(message) => json.message(self.name(), message),
            Self::Insert(message) => json.message(self.name(), message),
            Self::Update(message) => json.message(self.name(), message),
            Self::Delete(message) => json.message(self.name(), message),
            Self::Truncate(message) => json.message(self.name(), message),
            Self::StreamStart(message) => json.message(self.name(), message),
            Self::StreamStop(message) => json.message(self.name(), message),
            Self::StreamCommit(message) => json.message(self.name(), message),
            Self::StreamAbort(message) => json.message(self.name(), message),
            Self::BeginPrepare(message) => json.message(self.name(), message),
            Self::Prepare(message) => json.message(self.name(), message),
            Self::CommitPrepared(message) => json.message(self.name(), message),
            Self::RollbackPrepared(message) => json.message(self.name(), message),
            Self::StreamPrepare(message) => json.message(self.name(), message),
        }
        json.finish()
    }
}

/// Build a message.
pub fn build(message: &PgoutputMessage<'_>, layout: &Layout) -> rt::Result<Vec<u8>> {
    let mut w = rt::Writer::new();
    match message {
        PgoutputMessage::Begin(message) => rt::inside("Begin", message.write(&mut w))?,
        PgoutputMessage::Message(message) => rt::inside("Message", message.write(&mut w, layout))?,
        PgoutputMessage::Commit(message) => rt::inside("Commit", message.write(&mut w))?,
        PgoutputMessage::Origin(message) => rt::inside("Origin", message.write(&mut w))?,
        PgoutputMessage::Relation(message) => {
            rt::inside("Relation", message.write(&mut w, layout))?
        }
        PgoutputMessage::Type(message) => rt::inside("Type", message.write(&mut w, layout))?,
        PgoutputMessage::Insert(message) => rt::inside("Insert", message.write(&mut w, layout))?,
        PgoutputMessage::Update(message) => rt::inside("Update", message.write(&mut w, layout))?,
        PgoutputMessage::Delete(message) => rt::inside("Delete", message.write(&mut w, layout))?,
        PgoutputMessage::Truncate(message) => {
            rt::inside("Truncate", message.write(&mut w, layout))?
        }
        PgoutputMessage::StreamStart(message) => {
            rt::since("StreamStart", layout.proto_version, 2)?;
            rt::inside("StreamStart", message.write(&mut w))?;
        }
        PgoutputMessage::StreamStop(message) => {
            rt::since("StreamStop", layout.proto_version, 2)?;
            rt::inside("StreamStop", message.write(&mut w))?;
        }
        PgoutputMessage::StreamCommit(message) => {
            rt::since("StreamCommit", layout.proto_version, 2)?;
            rt::inside("StreamCommit", message.write(&mut w))?;
        }
        PgoutputMessage::StreamAbort(message) => {
            rt::inside("StreamAbort", message.write(&mut w, layout))?
        }
        PgoutputMessage::BeginPrepare(message) => {
            rt::inside("BeginPrepare", message.write(&mut w))?
        }
        PgoutputMessage::Prepare(message) => rt::inside("Prepare", message.write(&mut w))?,
        PgoutputMessage::CommitPrepared(message) => {
            rt::inside("CommitPrepared", message.write(&mut w))?
        }
        PgoutputMessage::RollbackPrepared(message) => {
            rt::inside("RollbackPrepared", message.write(&mut w))?
        }
        PgoutputMessage::StreamPrepare(message) => {
            rt::inside("StreamPrepare", message.write(&mut w))?
        }
    }
    Ok(w.finish())
}

/// Parse a message. Truncated, trailing or unknown bytes, values that are not defined, and messages
/// that are not sent under these options are errors, with the path of the field and the offset.
pub fn parse<'a>(payload: &'a [u8], layout: &Layout) -> rt::Result<PgoutputMessage<'a>> {
    let mut r = rt::Reader::new(payload);
    let message = match r.first()? {
        b'B' => {
            let found = Begin::read(&mut r);
            let message = rt::inside("Begin", found)?;
            PgoutputMessage::Begin(message)
        }
        b'M' => {
            let found = Message::read(&mut r, layout);
            let message = rt::inside("Message", found)?;
            PgoutputMessage::Message(message)
        }
        b'C' => {
            let found = Commit::read(&mut r);
            let message = rt::inside("Commit", found)?;
            PgoutputMessage::Commit(message)
        }
        b'O' => {
            let found = Origin::read(&mut r);
            let message = rt::inside("Origin", found)?;
            PgoutputMessage::Origin(message)
        }
        b'R' => {
            let found = Relation::read(&mut r, layout);
            let message = rt::inside("Relation", found)?;
            PgoutputMessage::Relation(message)
        }
        b'Y' => {
            let found = Type::read(&mut r, layout);
            let message = rt::inside("Type", found)?;
            PgoutputMessage::Type(message)
        }
        b'I' => {
            let found = Insert::read(&mut r, layout);
            let message = rt::inside("Insert", found)?;
            PgoutputMessage::Insert(message)
        }
        b'U' => {
            let found = Update::read(&mut r, layout);
            let message = rt::inside("Update", found)?;
            PgoutputMessage::Update(message)
        }
        b'D' => {
            let found = Delete::read(&mut r, layout);
            let message = rt::inside("Delete", found)?;
            PgoutputMessage::Delete(message)
        }
        b'T' => {
            let found = Truncate::read(&mut r, layout);
            let message = rt::inside("Truncate", found)?;
            PgoutputMessage::Truncate(message)
        }
        b'S' => {
            rt::since("StreamStart", layout.proto_version, 2)?;
            rt::asked("StreamStart", layout.has_streaming)?;
            let found = StreamStart::read(&mut r);
            let message = rt::inside("StreamStart", found)?;
            PgoutputMessage::StreamStart(message)
        }
        b'E' => {
            rt::since("StreamStop", layout.proto_version, 2)?;
            let found = StreamStop::read(&mut r);
            let message = rt::inside("StreamStop", found)?;
            PgoutputMessage::StreamStop(message)
        }
        b'c' => {
            rt::since("StreamCommit", layout.proto_version, 2)?;
            let found = StreamCommit::read(&mut r);
            let message = rt::inside("StreamCommit", found)?;
            PgoutputMessage::StreamCommit(message)
        }
        b'A' => {
            let found = StreamAbort::read(&mut r, layout);
            let message = rt::inside("StreamAbort", found)?;
            PgoutputMessage::StreamAbort(message)
        }
        b'b' => {
            let found = BeginPrepare::read(&mut r);
            let message = rt::inside("BeginPrepare", found)?;
            PgoutputMessage::BeginPrepare(message)
        }
        b'P' => {
            let found = Prepare::read(&mut r);
            let message = rt::inside("Prepare", found)?;
            PgoutputMessage::Prepare(message)
        }
        b'K' => {
            let found = CommitPrepared::read(&mut r);
            let message = rt::inside("CommitPrepared", found)?;
            PgoutputMessage::CommitPrepared(message)
        }
        b'r' => {
            let found = RollbackPrepared::read(&mut r);
            let message = rt::inside("RollbackPrepared", found)?;
            PgoutputMessage::RollbackPrepared(message)
        }
        b'p' => {
            let found = StreamPrepare::read(&mut r);
            let message = rt::inside("StreamPrepare", found)?;
            PgoutputMessage::StreamPrepare(message)
        }
        _ => return Err(rt::Error::unknown_tag()),
    };
    rt::inside(message.name(), r.end())?;
    Ok(message)
}
