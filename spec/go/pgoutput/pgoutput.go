// Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

// Package pgoutput has the logical replication messages: what they hold, and how they are read and
// built.
//
// Source: PostgreSQL's documentation, protocol-logicalrep-message-formats.
package pgoutput

import "pgoutput.test/codec/wire"

// Layout is what determines the layout of a message besides its bytes.
type Layout struct {
	// The option proto_version of START_REPLICATION.
	ProtoVersion int

	// A state: between Stream Start and Stream Stop.
	InStream bool

	// The option streaming is set to 'parallel'.
	Parallel bool

	// Whether the option streaming was requested.
	HasStreaming bool
}

// Streaming is the option streaming: How transactions are sent that are still running.
type Streaming string

// StreamingOff: After their commit.
const StreamingOff Streaming = "off"

// StreamingOn: In segments while they run.
const StreamingOn Streaming = "on"

// StreamingParallel: In segments while they run, with the fields for applying them in parallel.
const StreamingParallel Streaming = "parallel"

// Options are the options on which layouts depend.
type Options struct {
	// The protocol version.
	ProtoVersion int

	// How transactions are sent that are still running.
	Streaming Streaming
}

// Set sets an option by its name. A name that determines no layout, or a value that the option does
// not have, is an error; whether a server accepts them together, Check says.
func (o *Options) Set(name, value string) error {
	switch name {
	case "proto_version":
		return wire.SetNumber(&o.ProtoVersion, name, value)
	case "streaming":
		return wire.SetValue(&o.Streaming, name, value, "off", "on", "parallel")
	}
	return wire.UnknownOption(name)
}

// Check returns an error for options that a server refuses.
func (o *Options) Check() error {
	if !wire.IsOneOf(o.ProtoVersion, 1, 2, 3, 4) {
		return wire.RefusedOption("proto_version")
	}
	switch o.Streaming {
	case StreamingOff, "":
	case StreamingOn:
		if o.ProtoVersion < 2 {
			return wire.RefusedOption("streaming")
		}
	case StreamingParallel:
		if o.ProtoVersion < 4 {
			return wire.RefusedOption("streaming")
		}
	default:
		return wire.RefusedOption("streaming")
	}
	return nil
}

// Layout returns the layout of messages under these options, in a state of the stream: sets are the
// parameters that it sets, as bits; 0 if it sets none.
func (o *Options) Layout(sets uint64) *Layout {
	layout := new(Layout)
	layout.ProtoVersion = o.ProtoVersion
	layout.InStream = sets&InStream != 0
	layout.Parallel = o.Streaming == StreamingParallel
	layout.HasStreaming = o.Streaming != "" && o.Streaming != StreamingOff
	return layout
}

// InStream is the bit of a parameter that states of a stream set. A state: between Stream Start and
// Stream Stop.
const InStream uint64 = 1

// StateParameters are the names of these parameters, by the number of their bits.
var StateParameters = []string{"in_stream"}

// The parameters that each state of a stream sets, as bits: idle, transaction, preparing, stream.
var sets = []uint64{0, 0, 0, 1}

// The states in which each message is permitted, each with the one that follows.
var transitions = [][][2]int{
	{{0, 1}},
	{{0, 0}, {1, 1}, {2, 2}, {3, 3}},
	{{1, 0}},
	{{1, 1}, {2, 2}, {3, 3}},
	{{1, 1}, {2, 2}, {3, 3}},
	{{1, 1}, {2, 2}, {3, 3}},
	{{1, 1}, {2, 2}, {3, 3}},
	{{1, 1}, {2, 2}, {3, 3}},
	{{1, 1}, {2, 2}, {3, 3}},
	{{1, 1}, {2, 2}, {3, 3}},
	{{0, 3}},
	{{3, 0}},
	{{0, 0}},
	{{0, 0}},
	{{0, 2}},
	{{0, 0}, {2, 0}},
	{{0, 0}},
	{{0, 0}},
	{{0, 0}},
}

// Session parses and builds the messages of one connection in their order, by the state of the
// stream.
type Session struct {
	options Options

	state wire.StreamState

	layout *Layout
}

// NewSession starts a session; options that a server refuses are an error.
func NewSession(options Options) (*Session, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	s := &Session{options: options, state: wire.NewStreamState(sets, transitions)}
	s.follow()
	return s, nil
}

// Layout returns the layout of the next message.
func (s *Session) Layout() *Layout {
	return s.layout
}

// Parse parses the next message; an error leaves the state unchanged.
func (s *Session) Parse(payload []byte) (PgoutputMessage, error) {
	message, err := ParseMessage(payload, s.layout)
	if err == nil {
		err = s.advance(message)
	}
	if err != nil {
		return nil, err
	}
	return message, nil
}

// Build builds the next message; an error leaves the state unchanged.
func (s *Session) Build(message PgoutputMessage) ([]byte, error) {
	payload, err := BuildMessage(message, s.layout)
	if err == nil {
		err = s.advance(message)
	}
	if err != nil {
		return nil, err
	}
	return payload, nil
}

func (s *Session) follow() {
	s.layout = s.options.Layout(s.state.Sets())
}

func (s *Session) advance(message PgoutputMessage) error {
	changed, err := s.state.Advance(message.index(), message.MessageName())
	if changed {
		s.follow()
	}
	return err
}

// TupleDataValue: The format of the value. Kind says which field has it.
type TupleDataValue struct {
	// The tag.
	Kind wire.Letter

	// The content; of some kinds it is empty.
	Value []byte
}

// TupleDataValueNull: NULL.
const TupleDataValueNull wire.Letter = 'n'

// TupleDataValueUnchanged: An unchanged TOASTed value, which is not sent.
const TupleDataValueUnchanged wire.Letter = 'u'

// TupleDataValueText: The value as text, by its type's output function.
const TupleDataValueText wire.Letter = 't'

// TupleDataValueBinary: The value as binary, by its type's send function; under the option binary.
const TupleDataValueBinary wire.Letter = 'b'

func (m *TupleDataValue) read(r *wire.Reader) {
	m.Kind = r.Tag("", "nutb")
	switch m.Kind {
	case TupleDataValueText:
		m.Value = readTupleDataValueText(r)
	case TupleDataValueBinary:
		m.Value = readTupleDataValueBinary(r)
	}
}

func (m *TupleDataValue) write(w *wire.Writer) {
	w.Letter("", m.Kind, "nutb")
	switch m.Kind {
	case TupleDataValueText:
		writeTupleDataValueText(m.Value, w)
	case TupleDataValueBinary:
		writeTupleDataValueBinary(m.Value, w)
	default:
		w.Absent("", len(m.Value) > 0)
	}
}

func (m *TupleDataValue) json(j *wire.JSON, layout *Layout) {
	switch m.Kind {
	case TupleDataValueNull:
		j.Null()
	case TupleDataValueUnchanged:
		j.Marker("unchanged")
	case TupleDataValueText:
		j.TextOrHex("text", m.Value)
	case TupleDataValueBinary:
		j.Hex("binary", m.Value)
	default:
		j.Null()
	}
}

func readTupleDataValueText(r *wire.Reader) (value []byte) {
	length := r.Uint32("length")
	value = r.Bytes("data", uint64(length))
	return value
}

func writeTupleDataValueText(value []byte, w *wire.Writer) {
	w.Size("length", 4, len(value))
	w.Bytes(value)
}

func readTupleDataValueBinary(r *wire.Reader) (value []byte) {
	length := r.Uint32("length")
	value = r.Bytes("data", uint64(length))
	return value
}

func writeTupleDataValueBinary(value []byte, w *wire.Writer) {
	w.Size("length", 4, len(value))
	w.Bytes(value)
}

// TupleData: The values of one row, or of its key.
type TupleData = []TupleDataValue

func readTupleData(r *wire.Reader) (value []TupleDataValue) {
	columnCount := r.Uint16("column_count")
	r.Push("columns")
	value = make([]TupleDataValue, r.Room(uint64(columnCount)))
	for i := 0; uint64(i) < uint64(columnCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(value) {
			var item TupleDataValue
			value = append(value, item)
		}
		value[i].read(r)
	}
	r.Pop()
	return value
}

func writeTupleData(value []TupleDataValue, w *wire.Writer) {
	w.Size("column_count", 2, len(value))
	w.Push("columns")
	for i := range value {
		w.Index(i)
		value[i].write(w)
	}
	w.Pop()
}

// Begin: Opens a transaction that has committed; its changes follow.
//
// PostgreSQL 10 and newer.
type Begin struct {
	// LSN of the commit record, the same as Commit's commit_lsn.
	FinalLSN wire.LSN

	// Time of the commit, in microseconds since 2000-01-01 UTC.
	CommitTime wire.Timestamp

	// Transaction ID.
	XID uint32
}

func (m *Begin) read(r *wire.Reader) {
	r.Constant("tag", "B")
	m.FinalLSN = wire.LSN(r.Uint64("final_lsn"))
	m.CommitTime = wire.Timestamp(r.Int64("commit_time"))
	m.XID = r.Uint32("xid")
}

func (m *Begin) write(w *wire.Writer) {
	w.String("B")
	w.Uint64(uint64(m.FinalLSN))
	w.Int64(int64(m.CommitTime))
	w.Uint32(m.XID)
}

func (m *Begin) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("final_lsn")
	j.LSN(m.FinalLSN)
	j.Key("commit_time")
	j.Timestamp(m.CommitTime)
	j.Key("xid")
	j.Uint(uint64(m.XID))
	j.End()
}

// Message: A message written by pg_logical_emit_message(), sent when the option messages is on.
//
// PostgreSQL 14 and newer.
type Message struct {
	// Top-level transaction ID, present only inside a stream.
	XID wire.Optional[uint32]

	// Bit 1 is set when the message belongs to a transaction.
	Flags uint8

	// LSN of the message.
	LSN wire.LSN

	// Prefix given by the writer.
	Prefix wire.Text

	// Content given by the writer, never converted to the client's encoding.
	Content []byte
}

// MessageFlagsTransactional is a bit of Message.Flags: transactional.
const MessageFlagsTransactional uint8 = 1

func (m *Message) read(r *wire.Reader, layout *Layout) {
	r.Constant("tag", "M")
	if layout.ProtoVersion >= 2 && layout.InStream {
		m.XID.V = r.Uint32("xid")
		m.XID.Valid = true
	}
	m.Flags = wire.Bits(r, "flags", r.Uint8("flags"), 0x1)
	m.LSN = wire.LSN(r.Uint64("lsn"))
	m.Prefix = r.Text("prefix")
	contentLength := r.Uint32("content_length")
	m.Content = r.Bytes("content", uint64(contentLength))
}

func (m *Message) write(w *wire.Writer, layout *Layout) {
	w.String("M")
	if layout.ProtoVersion >= 2 && layout.InStream {
		w.Present("xid", m.XID.Valid)
		w.Uint32(m.XID.V)
	} else {
		w.Absent("xid", m.XID.Valid || m.XID.V != 0)
	}
	w.Uint8(wire.CheckBits(w, "flags", m.Flags, 0x1))
	w.Uint64(uint64(m.LSN))
	w.Text("prefix", m.Prefix)
	w.Size("content_length", 4, len(m.Content))
	w.Bytes(m.Content)
}

func (m *Message) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("xid")
	if m.XID.Valid {
		j.Uint(uint64(m.XID.V))
	} else {
		j.Null()
	}
	j.Key("flags")
	j.Uint(uint64(m.Flags))
	j.Key("lsn")
	j.LSN(m.LSN)
	j.Key("prefix")
	j.Text(m.Prefix)
	j.Key("content")
	j.Hex("hex", m.Content)
	j.End()
}

// Commit: Ends a transaction.
//
// PostgreSQL 10 and newer.
type Commit struct {
	// LSN at which the commit record starts.
	CommitLSN wire.LSN

	// LSN after the commit record: the position to confirm.
	EndLSN wire.LSN

	// Time of the commit, in microseconds since 2000-01-01 UTC.
	CommitTime wire.Timestamp
}

func (m *Commit) read(r *wire.Reader) {
	r.Constant("tag", "C")
	r.Constant("flags", "\x00")
	m.CommitLSN = wire.LSN(r.Uint64("commit_lsn"))
	m.EndLSN = wire.LSN(r.Uint64("end_lsn"))
	m.CommitTime = wire.Timestamp(r.Int64("commit_time"))
}

func (m *Commit) write(w *wire.Writer) {
	w.String("C")
	w.String("\x00")
	w.Uint64(uint64(m.CommitLSN))
	w.Uint64(uint64(m.EndLSN))
	w.Int64(int64(m.CommitTime))
}

func (m *Commit) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("commit_lsn")
	j.LSN(m.CommitLSN)
	j.Key("end_lsn")
	j.LSN(m.EndLSN)
	j.Key("commit_time")
	j.Timestamp(m.CommitTime)
	j.End()
}

// Origin: Names the replication origin of the transaction that has just begun.
//
// PostgreSQL 10 and newer.
type Origin struct {
	// LSN of the transaction's commit on its origin, 0/0 inside a stream.
	OriginLSN wire.LSN

	// Name of the origin.
	Name wire.Text
}

func (m *Origin) read(r *wire.Reader) {
	r.Constant("tag", "O")
	m.OriginLSN = wire.LSN(r.Uint64("origin_lsn"))
	m.Name = r.Text("name")
}

func (m *Origin) write(w *wire.Writer) {
	w.String("O")
	w.Uint64(uint64(m.OriginLSN))
	w.Text("name", m.Name)
}

func (m *Origin) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("origin_lsn")
	j.LSN(m.OriginLSN)
	j.Key("name")
	j.Text(m.Name)
	j.End()
}

// RelationColumn: One published column of the table.
type RelationColumn struct {
	// Bit 1 is set when the column is part of the replica identity.
	Flags uint8

	// Name of the column.
	Name wire.Text

	// OID of the column's type.
	TypeOID uint32

	// Type modifier, as atttypmod in pg_attribute; -1 for none.
	TypeModifier int32
}

// RelationColumnFlagsKey is a bit of RelationColumn.Flags: key.
const RelationColumnFlagsKey uint8 = 1

func (m *RelationColumn) read(r *wire.Reader) {
	m.Flags = wire.Bits(r, "flags", r.Uint8("flags"), 0x1)
	m.Name = r.Text("name")
	m.TypeOID = r.Uint32("type_oid")
	m.TypeModifier = r.Int32("type_modifier")
}

func (m *RelationColumn) write(w *wire.Writer) {
	w.Uint8(wire.CheckBits(w, "flags", m.Flags, 0x1))
	w.Text("name", m.Name)
	w.Uint32(m.TypeOID)
	w.Int32(m.TypeModifier)
}

func (m *RelationColumn) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("flags")
	j.Uint(uint64(m.Flags))
	j.Key("name")
	j.Text(m.Name)
	j.Key("type_oid")
	j.Uint(uint64(m.TypeOID))
	j.Key("type_modifier")
	j.Int(int64(m.TypeModifier))
	j.End()
}

// Relation: Describes a table before its first change.
//
// PostgreSQL 10 and newer.
type Relation struct {
	// Transaction or subtransaction ID, present only inside a stream.
	XID wire.Optional[uint32]

	// OID of the table.
	RelationOID uint32

	// Schema of the table, empty for pg_catalog.
	Namespace wire.Text

	// Name of the table.
	Name wire.Text

	// Replica identity setting, as relreplident in pg_class.
	ReplicaIdentity wire.Letter

	// One published column of the table.
	Columns []RelationColumn
}

// RelationReplicaIdentityDefault is a value of Relation.ReplicaIdentity: default.
const RelationReplicaIdentityDefault wire.Letter = 'd'

// RelationReplicaIdentityNothing is a value of Relation.ReplicaIdentity: nothing.
const RelationReplicaIdentityNothing wire.Letter = 'n'

// RelationReplicaIdentityFull is a value of Relation.ReplicaIdentity: full.
const RelationReplicaIdentityFull wire.Letter = 'f'

// RelationReplicaIdentityIndex is a value of Relation.ReplicaIdentity: index.
const RelationReplicaIdentityIndex wire.Letter = 'i'

func (m *Relation) read(r *wire.Reader, layout *Layout) {
	r.Constant("tag", "R")
	if layout.ProtoVersion >= 2 && layout.InStream {
		m.XID.V = r.Uint32("xid")
		m.XID.Valid = true
	}
	m.RelationOID = r.Uint32("relation_oid")
	m.Namespace = r.Text("namespace")
	m.Name = r.Text("name")
	m.ReplicaIdentity = r.Letter("replica_identity", "dnfi")
	columnCount := r.Uint16("column_count")
	r.Push("columns")
	m.Columns = make([]RelationColumn, r.Room(uint64(columnCount)))
	for i := 0; uint64(i) < uint64(columnCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.Columns) {
			var item RelationColumn
			m.Columns = append(m.Columns, item)
		}
		m.Columns[i].read(r)
	}
	r.Pop()
}

func (m *Relation) write(w *wire.Writer, layout *Layout) {
	w.String("R")
	if layout.ProtoVersion >= 2 && layout.InStream {
		w.Present("xid", m.XID.Valid)
		w.Uint32(m.XID.V)
	} else {
		w.Absent("xid", m.XID.Valid || m.XID.V != 0)
	}
	w.Uint32(m.RelationOID)
	w.Text("namespace", m.Namespace)
	w.Text("name", m.Name)
	w.Letter("replica_identity", m.ReplicaIdentity, "dnfi")
	w.Size("column_count", 2, len(m.Columns))
	w.Push("columns")
	for i := range m.Columns {
		w.Index(i)
		m.Columns[i].write(w)
	}
	w.Pop()
}

func (m *Relation) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("xid")
	if m.XID.Valid {
		j.Uint(uint64(m.XID.V))
	} else {
		j.Null()
	}
	j.Key("relation_oid")
	j.Uint(uint64(m.RelationOID))
	j.Key("namespace")
	j.Text(m.Namespace)
	j.Key("name")
	j.Text(m.Name)
	j.Key("replica_identity")
	j.Letter(m.ReplicaIdentity)
	j.Key("columns")
	j.Array()
	for i := range m.Columns {
		m.Columns[i].json(j, layout)
	}
	j.End()
	j.End()
}

// Type: Names a type that is not built in, before the Relation that uses it.
//
// PostgreSQL 10 and newer.
type Type struct {
	// Transaction or subtransaction ID, present only inside a stream.
	XID wire.Optional[uint32]

	// OID of the type.
	TypeOID uint32

	// Schema of the type, empty for pg_catalog.
	Namespace wire.Text

	// Name of the type; for a domain, of its base type.
	Name wire.Text
}

func (m *Type) read(r *wire.Reader, layout *Layout) {
	r.Constant("tag", "Y")
	if layout.ProtoVersion >= 2 && layout.InStream {
		m.XID.V = r.Uint32("xid")
		m.XID.Valid = true
	}
	m.TypeOID = r.Uint32("type_oid")
	m.Namespace = r.Text("namespace")
	m.Name = r.Text("name")
}

func (m *Type) write(w *wire.Writer, layout *Layout) {
	w.String("Y")
	if layout.ProtoVersion >= 2 && layout.InStream {
		w.Present("xid", m.XID.Valid)
		w.Uint32(m.XID.V)
	} else {
		w.Absent("xid", m.XID.Valid || m.XID.V != 0)
	}
	w.Uint32(m.TypeOID)
	w.Text("namespace", m.Namespace)
	w.Text("name", m.Name)
}

func (m *Type) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("xid")
	if m.XID.Valid {
		j.Uint(uint64(m.XID.V))
	} else {
		j.Null()
	}
	j.Key("type_oid")
	j.Uint(uint64(m.TypeOID))
	j.Key("namespace")
	j.Text(m.Namespace)
	j.Key("name")
	j.Text(m.Name)
	j.End()
}

// Insert: A new row.
//
// PostgreSQL 10 and newer.
type Insert struct {
	// Transaction or subtransaction ID, present only inside a stream.
	XID wire.Optional[uint32]

	// OID of a table that a Relation has described.
	RelationOID uint32

	// Values of the new row, in the order of the Relation's columns.
	New TupleData
}

func (m *Insert) read(r *wire.Reader, layout *Layout) {
	r.Constant("tag", "I")
	if layout.ProtoVersion >= 2 && layout.InStream {
		m.XID.V = r.Uint32("xid")
		m.XID.Valid = true
	}
	m.RelationOID = r.Uint32("relation_oid")
	r.Constant("new_tag", "N")
	r.Push("new")
	m.New = readTupleData(r)
	r.Pop()
}

func (m *Insert) write(w *wire.Writer, layout *Layout) {
	w.String("I")
	if layout.ProtoVersion >= 2 && layout.InStream {
		w.Present("xid", m.XID.Valid)
		w.Uint32(m.XID.V)
	} else {
		w.Absent("xid", m.XID.Valid || m.XID.V != 0)
	}
	w.Uint32(m.RelationOID)
	w.String("N")
	w.Push("new")
	writeTupleData(m.New, w)
	w.Pop()
}

func (m *Insert) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("xid")
	if m.XID.Valid {
		j.Uint(uint64(m.XID.V))
	} else {
		j.Null()
	}
	j.Key("relation_oid")
	j.Uint(uint64(m.RelationOID))
	j.Key("new")
	j.Array()
	for i := range m.New {
		m.New[i].json(j, layout)
	}
	j.End()
	j.End()
}

// UpdateOld: The row before the change: the whole row, or its key where that changed or is TOASTed,
// or nothing. Kind says which field has it.
type UpdateOld struct {
	// The tag.
	Kind wire.Letter

	// The content; of some kinds it is empty.
	Value TupleData
}

// UpdateOldKey: The old key; columns outside the key are null.
const UpdateOldKey wire.Letter = 'K'

// UpdateOldRow: The whole old row, under REPLICA IDENTITY FULL.
const UpdateOldRow wire.Letter = 'O'

func (m *UpdateOld) read(r *wire.Reader) {
	m.Kind = r.Tag("old_kind", "KO")
	switch m.Kind {
	case UpdateOldKey:
		r.Push("old")
		m.Value = readTupleData(r)
		r.Pop()
	case UpdateOldRow:
		r.Push("old")
		m.Value = readTupleData(r)
		r.Pop()
	}
}

func (m *UpdateOld) write(w *wire.Writer) {
	w.Letter("old_kind", m.Kind, "KO")
	switch m.Kind {
	case UpdateOldKey:
		w.Push("old")
		writeTupleData(m.Value, w)
		w.Pop()
	case UpdateOldRow:
		w.Push("old")
		writeTupleData(m.Value, w)
		w.Pop()
	}
}

func (m *UpdateOld) json(j *wire.JSON, layout *Layout) {
	switch m.Kind {
	case UpdateOldKey:
		j.Array()
		for i := range m.Value {
			m.Value[i].json(j, layout)
		}
		j.End()
	case UpdateOldRow:
		j.Array()
		for i := range m.Value {
			m.Value[i].json(j, layout)
		}
		j.End()
	default:
		j.Null()
	}
}

// Update: A changed row.
//
// PostgreSQL 10 and newer.
type Update struct {
	// Transaction or subtransaction ID, present only inside a stream.
	XID wire.Optional[uint32]

	// OID of a table that a Relation has described.
	RelationOID uint32

	// The row before the change: the whole row, or its key where that changed or is TOASTed, or
	// nothing.
	Old wire.Optional[UpdateOld]

	// Values of the new row, in the order of the Relation's columns.
	New TupleData
}

func (m *Update) read(r *wire.Reader, layout *Layout) {
	r.Constant("tag", "U")
	if layout.ProtoVersion >= 2 && layout.InStream {
		m.XID.V = r.Uint32("xid")
		m.XID.Valid = true
	}
	m.RelationOID = r.Uint32("relation_oid")
	if !r.Next('N') {
		m.Old.V.read(r)
		m.Old.Valid = true
	}
	r.Constant("new_tag", "N")
	r.Push("new")
	m.New = readTupleData(r)
	r.Pop()
}

func (m *Update) write(w *wire.Writer, layout *Layout) {
	w.String("U")
	if layout.ProtoVersion >= 2 && layout.InStream {
		w.Present("xid", m.XID.Valid)
		w.Uint32(m.XID.V)
	} else {
		w.Absent("xid", m.XID.Valid || m.XID.V != 0)
	}
	w.Uint32(m.RelationOID)
	if m.Old.Valid {
		m.Old.V.write(w)
	} else {
		w.Absent("old", m.Old.V.Kind != 0)
	}
	w.String("N")
	w.Push("new")
	writeTupleData(m.New, w)
	w.Pop()
}

func (m *Update) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("xid")
	if m.XID.Valid {
		j.Uint(uint64(m.XID.V))
	} else {
		j.Null()
	}
	j.Key("relation_oid")
	j.Uint(uint64(m.RelationOID))
	j.Key("old_kind")
	if m.Old.Valid {
		j.Letter(m.Old.V.Kind)
	} else {
		j.Null()
	}
	j.Key("old")
	if m.Old.Valid {
		m.Old.V.json(j, layout)
	} else {
		j.Null()
	}
	j.Key("new")
	j.Array()
	for i := range m.New {
		m.New[i].json(j, layout)
	}
	j.End()
	j.End()
}

// DeleteOld: The removed row: whole, or its key. Kind says which field has it.
type DeleteOld struct {
	// The tag.
	Kind wire.Letter

	// The content; of some kinds it is empty.
	Value TupleData
}

// DeleteOldKey: The old key; columns outside the key are null.
const DeleteOldKey wire.Letter = 'K'

// DeleteOldRow: The whole old row, under REPLICA IDENTITY FULL.
const DeleteOldRow wire.Letter = 'O'

func (m *DeleteOld) read(r *wire.Reader) {
	m.Kind = r.Tag("old_kind", "KO")
	switch m.Kind {
	case DeleteOldKey:
		r.Push("old")
		m.Value = readTupleData(r)
		r.Pop()
	case DeleteOldRow:
		r.Push("old")
		m.Value = readTupleData(r)
		r.Pop()
	}
}

func (m *DeleteOld) write(w *wire.Writer) {
	w.Letter("old_kind", m.Kind, "KO")
	switch m.Kind {
	case DeleteOldKey:
		w.Push("old")
		writeTupleData(m.Value, w)
		w.Pop()
	case DeleteOldRow:
		w.Push("old")
		writeTupleData(m.Value, w)
		w.Pop()
	}
}

func (m *DeleteOld) json(j *wire.JSON, layout *Layout) {
	switch m.Kind {
	case DeleteOldKey:
		j.Array()
		for i := range m.Value {
			m.Value[i].json(j, layout)
		}
		j.End()
	case DeleteOldRow:
		j.Array()
		for i := range m.Value {
			m.Value[i].json(j, layout)
		}
		j.End()
	default:
		j.Null()
	}
}

// Delete: A removed row.
//
// PostgreSQL 10 and newer.
type Delete struct {
	// Transaction or subtransaction ID, present only inside a stream.
	XID wire.Optional[uint32]

	// OID of a table that a Relation has described.
	RelationOID uint32

	// The removed row: whole, or its key.
	Old DeleteOld
}

func (m *Delete) read(r *wire.Reader, layout *Layout) {
	r.Constant("tag", "D")
	if layout.ProtoVersion >= 2 && layout.InStream {
		m.XID.V = r.Uint32("xid")
		m.XID.Valid = true
	}
	m.RelationOID = r.Uint32("relation_oid")
	m.Old.read(r)
}

func (m *Delete) write(w *wire.Writer, layout *Layout) {
	w.String("D")
	if layout.ProtoVersion >= 2 && layout.InStream {
		w.Present("xid", m.XID.Valid)
		w.Uint32(m.XID.V)
	} else {
		w.Absent("xid", m.XID.Valid || m.XID.V != 0)
	}
	w.Uint32(m.RelationOID)
	m.Old.write(w)
}

func (m *Delete) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("xid")
	if m.XID.Valid {
		j.Uint(uint64(m.XID.V))
	} else {
		j.Null()
	}
	j.Key("relation_oid")
	j.Uint(uint64(m.RelationOID))
	j.Key("old_kind")
	j.Letter(m.Old.Kind)
	j.Key("old")
	m.Old.json(j, layout)
	j.End()
}

// Truncate: Tables emptied by one TRUNCATE.
//
// PostgreSQL 11 and newer.
type Truncate struct {
	// Transaction or subtransaction ID, present only inside a stream.
	XID wire.Optional[uint32]

	// Bit 1 for CASCADE, bit 2 for RESTART IDENTITY.
	Options uint8

	// One emptied table.
	RelationOIDs []uint32
}

// TruncateOptionsCascade is a bit of Truncate.Options: cascade.
const TruncateOptionsCascade uint8 = 1

// TruncateOptionsRestartIdentity is a bit of Truncate.Options: restart identity.
const TruncateOptionsRestartIdentity uint8 = 2

func (m *Truncate) read(r *wire.Reader, layout *Layout) {
	r.Constant("tag", "T")
	if layout.ProtoVersion >= 2 && layout.InStream {
		m.XID.V = r.Uint32("xid")
		m.XID.Valid = true
	}
	relationCount := r.Uint32("relation_count")
	m.Options = wire.Bits(r, "options", r.Uint8("options"), 0x3)
	r.Push("relation_oids")
	m.RelationOIDs = make([]uint32, r.Room(uint64(relationCount)))
	for i := 0; uint64(i) < uint64(relationCount) && r.OK(); i++ {
		r.Index(i)
		if i == len(m.RelationOIDs) {
			var item uint32
			m.RelationOIDs = append(m.RelationOIDs, item)
		}
		m.RelationOIDs[i] = r.Uint32("")
	}
	r.Pop()
}

func (m *Truncate) write(w *wire.Writer, layout *Layout) {
	w.String("T")
	if layout.ProtoVersion >= 2 && layout.InStream {
		w.Present("xid", m.XID.Valid)
		w.Uint32(m.XID.V)
	} else {
		w.Absent("xid", m.XID.Valid || m.XID.V != 0)
	}
	w.Size("relation_count", 4, len(m.RelationOIDs))
	w.Uint8(wire.CheckBits(w, "options", m.Options, 0x3))
	w.Push("relation_oids")
	for i := range m.RelationOIDs {
		w.Index(i)
		w.Uint32(m.RelationOIDs[i])
	}
	w.Pop()
}

func (m *Truncate) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("xid")
	if m.XID.Valid {
		j.Uint(uint64(m.XID.V))
	} else {
		j.Null()
	}
	j.Key("options")
	j.Uint(uint64(m.Options))
	j.Key("relation_oids")
	j.Array()
	for i := range m.RelationOIDs {
		j.Uint(uint64(m.RelationOIDs[i]))
	}
	j.End()
	j.End()
}

// StreamStart: Opens one segment of a transaction that is still running.
//
// PostgreSQL 14 and newer, protocol version 2 and newer.
type StreamStart struct {
	// Top-level transaction ID.
	XID uint32

	// 1 for the transaction's first segment and 0 for the others.
	FirstSegment uint8
}

// StreamStartFirstSegmentLaterSegment is a value of StreamStart.FirstSegment: later segment.
const StreamStartFirstSegmentLaterSegment uint8 = 0

// StreamStartFirstSegmentFirstSegment is a value of StreamStart.FirstSegment: first segment.
const StreamStartFirstSegmentFirstSegment uint8 = 1

func (m *StreamStart) read(r *wire.Reader) {
	r.Constant("tag", "S")
	m.XID = r.Uint32("xid")
	m.FirstSegment = wire.OneOf(r, "first_segment", r.Uint8("first_segment"), 0, 1)
}

func (m *StreamStart) write(w *wire.Writer) {
	w.String("S")
	w.Uint32(m.XID)
	w.Uint8(wire.CheckOneOf(w, "first_segment", m.FirstSegment, 0, 1))
}

func (m *StreamStart) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("xid")
	j.Uint(uint64(m.XID))
	j.Key("first_segment")
	j.Uint(uint64(m.FirstSegment))
	j.End()
}

// StreamStop: Ends a segment; others may follow.
//
// PostgreSQL 14 and newer, protocol version 2 and newer.
type StreamStop struct{}

func (m *StreamStop) read(r *wire.Reader) {
	r.Constant("tag", "E")
}

func (m *StreamStop) write(w *wire.Writer) {
	w.String("E")
}

func (m *StreamStop) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.End()
}

// StreamCommit: Commits a streamed transaction.
//
// PostgreSQL 14 and newer, protocol version 2 and newer.
type StreamCommit struct {
	// Top-level transaction ID.
	XID uint32

	// LSN at which the commit record starts.
	CommitLSN wire.LSN

	// LSN after the commit record: the position to confirm.
	EndLSN wire.LSN

	// Time of the commit, in microseconds since 2000-01-01 UTC.
	CommitTime wire.Timestamp
}

func (m *StreamCommit) read(r *wire.Reader) {
	r.Constant("tag", "c")
	m.XID = r.Uint32("xid")
	r.Constant("flags", "\x00")
	m.CommitLSN = wire.LSN(r.Uint64("commit_lsn"))
	m.EndLSN = wire.LSN(r.Uint64("end_lsn"))
	m.CommitTime = wire.Timestamp(r.Int64("commit_time"))
}

func (m *StreamCommit) write(w *wire.Writer) {
	w.String("c")
	w.Uint32(m.XID)
	w.String("\x00")
	w.Uint64(uint64(m.CommitLSN))
	w.Uint64(uint64(m.EndLSN))
	w.Int64(int64(m.CommitTime))
}

func (m *StreamCommit) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("xid")
	j.Uint(uint64(m.XID))
	j.Key("commit_lsn")
	j.LSN(m.CommitLSN)
	j.Key("end_lsn")
	j.LSN(m.EndLSN)
	j.Key("commit_time")
	j.Timestamp(m.CommitTime)
	j.End()
}

// StreamAbort: Rolls back a streamed transaction or one of its subtransactions.
//
// PostgreSQL 14 and newer, protocol version 2 and newer.
type StreamAbort struct {
	// Top-level transaction ID.
	XID uint32

	// ID of the transaction that is rolled back: a subtransaction, or the top-level transaction itself.
	Subxid uint32

	// LSN after the abort record, 0/0 for a transaction lost in a crash.
	AbortLSN wire.Optional[wire.LSN]

	// Time of the abort, in microseconds since 2000-01-01 UTC.
	AbortTime wire.Optional[wire.Timestamp]
}

func (m *StreamAbort) read(r *wire.Reader, layout *Layout) {
	r.Constant("tag", "A")
	m.XID = r.Uint32("xid")
	m.Subxid = r.Uint32("subxid")
	if layout.ProtoVersion >= 4 && layout.Parallel {
		m.AbortLSN.V = wire.LSN(r.Uint64("abort_lsn"))
		m.AbortLSN.Valid = true
	}
	if layout.ProtoVersion >= 4 && layout.Parallel {
		m.AbortTime.V = wire.Timestamp(r.Int64("abort_time"))
		m.AbortTime.Valid = true
	}
}

func (m *StreamAbort) write(w *wire.Writer, layout *Layout) {
	w.String("A")
	w.Uint32(m.XID)
	w.Uint32(m.Subxid)
	if layout.ProtoVersion >= 4 && layout.Parallel {
		w.Present("abort_lsn", m.AbortLSN.Valid)
		w.Uint64(uint64(m.AbortLSN.V))
	} else {
		w.Absent("abort_lsn", m.AbortLSN.Valid || m.AbortLSN.V != 0)
	}
	if layout.ProtoVersion >= 4 && layout.Parallel {
		w.Present("abort_time", m.AbortTime.Valid)
		w.Int64(int64(m.AbortTime.V))
	} else {
		w.Absent("abort_time", m.AbortTime.Valid || m.AbortTime.V != 0)
	}
}

func (m *StreamAbort) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("xid")
	j.Uint(uint64(m.XID))
	j.Key("subxid")
	j.Uint(uint64(m.Subxid))
	j.Key("abort_lsn")
	if m.AbortLSN.Valid {
		j.LSN(m.AbortLSN.V)
	} else {
		j.Null()
	}
	j.Key("abort_time")
	if m.AbortTime.Valid {
		j.Timestamp(m.AbortTime.V)
	} else {
		j.Null()
	}
	j.End()
}

// BeginPrepare: Opens a transaction that has been prepared; its changes follow.
//
// PostgreSQL 15 and newer, protocol version 3 and newer.
type BeginPrepare struct {
	// LSN at which the prepare record starts.
	PrepareLSN wire.LSN

	// LSN after the prepare record.
	EndLSN wire.LSN

	// Time of the prepare, in microseconds since 2000-01-01 UTC.
	PrepareTime wire.Timestamp

	// Transaction ID.
	XID uint32

	// Name given in PREPARE TRANSACTION.
	GID wire.Text
}

func (m *BeginPrepare) read(r *wire.Reader) {
	r.Constant("tag", "b")
	m.PrepareLSN = wire.LSN(r.Uint64("prepare_lsn"))
	m.EndLSN = wire.LSN(r.Uint64("end_lsn"))
	m.PrepareTime = wire.Timestamp(r.Int64("prepare_time"))
	m.XID = r.Uint32("xid")
	m.GID = r.Text("gid")
}

func (m *BeginPrepare) write(w *wire.Writer) {
	w.String("b")
	w.Uint64(uint64(m.PrepareLSN))
	w.Uint64(uint64(m.EndLSN))
	w.Int64(int64(m.PrepareTime))
	w.Uint32(m.XID)
	w.Text("gid", m.GID)
}

func (m *BeginPrepare) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("prepare_lsn")
	j.LSN(m.PrepareLSN)
	j.Key("end_lsn")
	j.LSN(m.EndLSN)
	j.Key("prepare_time")
	j.Timestamp(m.PrepareTime)
	j.Key("xid")
	j.Uint(uint64(m.XID))
	j.Key("gid")
	j.Text(m.GID)
	j.End()
}

// Prepare: Ends the changes of a prepared transaction; without any, PostgreSQL 18 sends no Begin
// Prepare.
//
// PostgreSQL 15 and newer, protocol version 3 and newer.
type Prepare struct {
	// LSN at which the prepare record starts.
	PrepareLSN wire.LSN

	// LSN after the prepare record: the position to confirm.
	EndLSN wire.LSN

	// Time of the prepare, in microseconds since 2000-01-01 UTC.
	PrepareTime wire.Timestamp

	// Transaction ID.
	XID uint32

	// Name given in PREPARE TRANSACTION.
	GID wire.Text
}

func (m *Prepare) read(r *wire.Reader) {
	r.Constant("tag", "P")
	r.Constant("flags", "\x00")
	m.PrepareLSN = wire.LSN(r.Uint64("prepare_lsn"))
	m.EndLSN = wire.LSN(r.Uint64("end_lsn"))
	m.PrepareTime = wire.Timestamp(r.Int64("prepare_time"))
	m.XID = r.Uint32("xid")
	m.GID = r.Text("gid")
}

func (m *Prepare) write(w *wire.Writer) {
	w.String("P")
	w.String("\x00")
	w.Uint64(uint64(m.PrepareLSN))
	w.Uint64(uint64(m.EndLSN))
	w.Int64(int64(m.PrepareTime))
	w.Uint32(m.XID)
	w.Text("gid", m.GID)
}

func (m *Prepare) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("prepare_lsn")
	j.LSN(m.PrepareLSN)
	j.Key("end_lsn")
	j.LSN(m.EndLSN)
	j.Key("prepare_time")
	j.Timestamp(m.PrepareTime)
	j.Key("xid")
	j.Uint(uint64(m.XID))
	j.Key("gid")
	j.Text(m.GID)
	j.End()
}

// CommitPrepared: Commits a transaction that was prepared earlier.
//
// PostgreSQL 15 and newer, protocol version 3 and newer.
type CommitPrepared struct {
	// LSN at which the commit record starts.
	CommitLSN wire.LSN

	// LSN after the commit record: the position to confirm.
	EndLSN wire.LSN

	// Time of the commit, in microseconds since 2000-01-01 UTC.
	CommitTime wire.Timestamp

	// Transaction ID.
	XID uint32

	// Name given in PREPARE TRANSACTION.
	GID wire.Text
}

func (m *CommitPrepared) read(r *wire.Reader) {
	r.Constant("tag", "K")
	r.Constant("flags", "\x00")
	m.CommitLSN = wire.LSN(r.Uint64("commit_lsn"))
	m.EndLSN = wire.LSN(r.Uint64("end_lsn"))
	m.CommitTime = wire.Timestamp(r.Int64("commit_time"))
	m.XID = r.Uint32("xid")
	m.GID = r.Text("gid")
}

func (m *CommitPrepared) write(w *wire.Writer) {
	w.String("K")
	w.String("\x00")
	w.Uint64(uint64(m.CommitLSN))
	w.Uint64(uint64(m.EndLSN))
	w.Int64(int64(m.CommitTime))
	w.Uint32(m.XID)
	w.Text("gid", m.GID)
}

func (m *CommitPrepared) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("commit_lsn")
	j.LSN(m.CommitLSN)
	j.Key("end_lsn")
	j.LSN(m.EndLSN)
	j.Key("commit_time")
	j.Timestamp(m.CommitTime)
	j.Key("xid")
	j.Uint(uint64(m.XID))
	j.Key("gid")
	j.Text(m.GID)
	j.End()
}

// RollbackPrepared: Rolls back a transaction that was prepared earlier.
//
// PostgreSQL 15 and newer, protocol version 3 and newer.
type RollbackPrepared struct {
	// LSN after the prepare record, which tells whether that prepare was received.
	PrepareEndLSN wire.LSN

	// LSN after the rollback record: the position to confirm.
	RollbackEndLSN wire.LSN

	// Time of the prepare, in microseconds since 2000-01-01 UTC.
	PrepareTime wire.Timestamp

	// Time of the rollback, in microseconds since 2000-01-01 UTC.
	RollbackTime wire.Timestamp

	// Transaction ID.
	XID uint32

	// Name given in PREPARE TRANSACTION.
	GID wire.Text
}

func (m *RollbackPrepared) read(r *wire.Reader) {
	r.Constant("tag", "r")
	r.Constant("flags", "\x00")
	m.PrepareEndLSN = wire.LSN(r.Uint64("prepare_end_lsn"))
	m.RollbackEndLSN = wire.LSN(r.Uint64("rollback_end_lsn"))
	m.PrepareTime = wire.Timestamp(r.Int64("prepare_time"))
	m.RollbackTime = wire.Timestamp(r.Int64("rollback_time"))
	m.XID = r.Uint32("xid")
	m.GID = r.Text("gid")
}

func (m *RollbackPrepared) write(w *wire.Writer) {
	w.String("r")
	w.String("\x00")
	w.Uint64(uint64(m.PrepareEndLSN))
	w.Uint64(uint64(m.RollbackEndLSN))
	w.Int64(int64(m.PrepareTime))
	w.Int64(int64(m.RollbackTime))
	w.Uint32(m.XID)
	w.Text("gid", m.GID)
}

func (m *RollbackPrepared) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("prepare_end_lsn")
	j.LSN(m.PrepareEndLSN)
	j.Key("rollback_end_lsn")
	j.LSN(m.RollbackEndLSN)
	j.Key("prepare_time")
	j.Timestamp(m.PrepareTime)
	j.Key("rollback_time")
	j.Timestamp(m.RollbackTime)
	j.Key("xid")
	j.Uint(uint64(m.XID))
	j.Key("gid")
	j.Text(m.GID)
	j.End()
}

// StreamPrepare: Ends a streamed transaction that has been prepared.
//
// PostgreSQL 15 and newer, protocol version 3 and newer.
type StreamPrepare struct {
	// LSN at which the prepare record starts.
	PrepareLSN wire.LSN

	// LSN after the prepare record: the position to confirm.
	EndLSN wire.LSN

	// Time of the prepare, in microseconds since 2000-01-01 UTC.
	PrepareTime wire.Timestamp

	// Top-level transaction ID.
	XID uint32

	// Name given in PREPARE TRANSACTION.
	GID wire.Text
}

func (m *StreamPrepare) read(r *wire.Reader) {
	r.Constant("tag", "p")
	r.Constant("flags", "\x00")
	m.PrepareLSN = wire.LSN(r.Uint64("prepare_lsn"))
	m.EndLSN = wire.LSN(r.Uint64("end_lsn"))
	m.PrepareTime = wire.Timestamp(r.Int64("prepare_time"))
	m.XID = r.Uint32("xid")
	m.GID = r.Text("gid")
}

func (m *StreamPrepare) write(w *wire.Writer) {
	w.String("p")
	w.String("\x00")
	w.Uint64(uint64(m.PrepareLSN))
	w.Uint64(uint64(m.EndLSN))
	w.Int64(int64(m.PrepareTime))
	w.Uint32(m.XID)
	w.Text("gid", m.GID)
}

func (m *StreamPrepare) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("prepare_lsn")
	j.LSN(m.PrepareLSN)
	j.Key("end_lsn")
	j.LSN(m.EndLSN)
	j.Key("prepare_time")
	j.Timestamp(m.PrepareTime)
	j.Key("xid")
	j.Uint(uint64(m.XID))
	j.Key("gid")
	j.Text(m.GID)
	j.End()
}

// PgoutputMessage is any of the messages.
type PgoutputMessage interface {
	// MessageName returns the name of the message.
	MessageName() string

	json(j *wire.JSON, layout *Layout)
	index() int
}

// MessageName returns the name of the message.
func (*Begin) MessageName() string {
	return "Begin"
}

func (*Begin) index() int {
	return 0
}

// MessageName returns the name of the message.
func (*Message) MessageName() string {
	return "Message"
}

func (*Message) index() int {
	return 1
}

// MessageName returns the name of the message.
func (*Commit) MessageName() string {
	return "Commit"
}

func (*Commit) index() int {
	return 2
}

// MessageName returns the name of the message.
func (*Origin) MessageName() string {
	return "Origin"
}

func (*Origin) index() int {
	return 3
}

// MessageName returns the name of the message.
func (*Relation) MessageName() string {
	return "Relation"
}

func (*Relation) index() int {
	return 4
}

// MessageName returns the name of the message.
func (*Type) MessageName() string {
	return "Type"
}

func (*Type) index() int {
	return 5
}

// MessageName returns the name of the message.
func (*Insert) MessageName() string {
	return "Insert"
}

func (*Insert) index() int {
	return 6
}

// MessageName returns the name of the message.
func (*Update) MessageName() string {
	return "Update"
}

func (*Update) index() int {
	return 7
}

// MessageName returns the name of the message.
func (*Delete) MessageName() string {
	return "Delete"
}

func (*Delete) index() int {
	return 8
}

// MessageName returns the name of the message.
func (*Truncate) MessageName() string {
	return "Truncate"
}

func (*Truncate) index() int {
	return 9
}

// MessageName returns the name of the message.
func (*StreamStart) MessageName() string {
	return "StreamStart"
}

func (*StreamStart) index() int {
	return 10
}

// MessageName returns the name of the message.
func (*StreamStop) MessageName() string {
	return "StreamStop"
}

func (*StreamStop) index() int {
	return 11
}

// MessageName returns the name of the message.
func (*StreamCommit) MessageName() string {
	return "StreamCommit"
}

func (*StreamCommit) index() int {
	return 12
}

// MessageName returns the name of the message.
func (*StreamAbort) MessageName() string {
	return "StreamAbort"
}

func (*StreamAbort) index() int {
	return 13
}

// MessageName returns the name of the message.
func (*BeginPrepare) MessageName() string {
	return "BeginPrepare"
}

func (*BeginPrepare) index() int {
	return 14
}

// MessageName returns the name of the message.
func (*Prepare) MessageName() string {
	return "Prepare"
}

func (*Prepare) index() int {
	return 15
}

// MessageName returns the name of the message.
func (*CommitPrepared) MessageName() string {
	return "CommitPrepared"
}

func (*CommitPrepared) index() int {
	return 16
}

// MessageName returns the name of the message.
func (*RollbackPrepared) MessageName() string {
	return "RollbackPrepared"
}

func (*RollbackPrepared) index() int {
	return 17
}

// MessageName returns the name of the message.
func (*StreamPrepare) MessageName() string {
	return "StreamPrepare"
}

func (*StreamPrepare) index() int {
	return 18
}

// ToJSON returns a message as JSON, as the golden vectors have it.
func ToJSON(message PgoutputMessage, layout *Layout) []byte {
	j := wire.NewJSON(message.MessageName())
	message.json(j, layout)
	return j.Finish()
}

// BuildMessage returns the bytes of a message.
func BuildMessage(message PgoutputMessage, layout *Layout) ([]byte, error) {
	w := wire.NewWriter(message.MessageName())
	switch m := message.(type) {
	case *Begin:
		m.write(w)
	case *Message:
		m.write(w, layout)
	case *Commit:
		m.write(w)
	case *Origin:
		m.write(w)
	case *Relation:
		m.write(w, layout)
	case *Type:
		m.write(w, layout)
	case *Insert:
		m.write(w, layout)
	case *Update:
		m.write(w, layout)
	case *Delete:
		m.write(w, layout)
	case *Truncate:
		m.write(w, layout)
	case *StreamStart:
		w.Since(layout.ProtoVersion, 2)
		m.write(w)
	case *StreamStop:
		w.Since(layout.ProtoVersion, 2)
		m.write(w)
	case *StreamCommit:
		w.Since(layout.ProtoVersion, 2)
		m.write(w)
	case *StreamAbort:
		m.write(w, layout)
	case *BeginPrepare:
		m.write(w)
	case *Prepare:
		m.write(w)
	case *CommitPrepared:
		m.write(w)
	case *RollbackPrepared:
		m.write(w)
	case *StreamPrepare:
		m.write(w)
	}
	return w.Finish()
}

// ParseMessage parses a message. Truncated, trailing or unknown bytes, values that are not defined,
// and messages that are not sent under these options are errors, with the path of the field and the
// offset. Bytes and text of the message share the memory of the payload.
func ParseMessage(payload []byte, layout *Layout) (PgoutputMessage, error) {
	r := wire.NewReader(payload)
	var message PgoutputMessage
	switch r.First() {
	case 'B':
		r.Begin("Begin")
		m := new(Begin)
		m.read(r)
		message = m
	case 'M':
		r.Begin("Message")
		m := new(Message)
		m.read(r, layout)
		message = m
	case 'C':
		r.Begin("Commit")
		m := new(Commit)
		m.read(r)
		message = m
	case 'O':
		r.Begin("Origin")
		m := new(Origin)
		m.read(r)
		message = m
	case 'R':
		r.Begin("Relation")
		m := new(Relation)
		m.read(r, layout)
		message = m
	case 'Y':
		r.Begin("Type")
		m := new(Type)
		m.read(r, layout)
		message = m
	case 'I':
		r.Begin("Insert")
		m := new(Insert)
		m.read(r, layout)
		message = m
	case 'U':
		r.Begin("Update")
		m := new(Update)
		m.read(r, layout)
		message = m
	case 'D':
		r.Begin("Delete")
		m := new(Delete)
		m.read(r, layout)
		message = m
	case 'T':
		r.Begin("Truncate")
		m := new(Truncate)
		m.read(r, layout)
		message = m
	case 'S':
		r.Begin("StreamStart")
		r.Since(layout.ProtoVersion, 2)
		r.Asked(layout.HasStreaming)
		m := new(StreamStart)
		m.read(r)
		message = m
	case 'E':
		r.Begin("StreamStop")
		r.Since(layout.ProtoVersion, 2)
		m := new(StreamStop)
		m.read(r)
		message = m
	case 'c':
		r.Begin("StreamCommit")
		r.Since(layout.ProtoVersion, 2)
		m := new(StreamCommit)
		m.read(r)
		message = m
	case 'A':
		r.Begin("StreamAbort")
		m := new(StreamAbort)
		m.read(r, layout)
		message = m
	case 'b':
		r.Begin("BeginPrepare")
		m := new(BeginPrepare)
		m.read(r)
		message = m
	case 'P':
		r.Begin("Prepare")
		m := new(Prepare)
		m.read(r)
		message = m
	case 'K':
		r.Begin("CommitPrepared")
		m := new(CommitPrepared)
		m.read(r)
		message = m
	case 'r':
		r.Begin("RollbackPrepared")
		m := new(RollbackPrepared)
		m.read(r)
		message = m
	case 'p':
		r.Begin("StreamPrepare")
		m := new(StreamPrepare)
		m.read(r)
		message = m
	default:
		return nil, r.UnknownTag()
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return message, nil
}
