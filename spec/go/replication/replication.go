// Generated from spec/replication.yaml by: python -m tools.generate. Do not edit.

// Package replication has the streaming replication envelope: what they hold, and how they are read
// and built.
//
// Source: PostgreSQL's documentation, protocol-replication.
package replication

import "pgoutput.test/codec/wire"

// Layout is what determines the layout of a message besides its bytes.
type Layout struct{}

// XLogData: A piece of WAL; in logical replication, one message. PostgreSQL 19 calls it WALData.
//
// PostgreSQL 10 and newer, sent by the server.
type XLogData struct {
	// LSN of the message, 0/0 for Relation, Type and what an Origin follows.
	WalStart wire.LSN

	// In logical replication, the same as wal_start.
	WalEnd wire.LSN

	// The server's clock when it sent this, in microseconds since 2000-01-01 UTC.
	SendTime wire.Timestamp

	// The payload, to the end.
	Data []byte
}

func (m *XLogData) read(r *wire.Reader) {
	r.Constant("tag", "w")
	m.WalStart = wire.LSN(r.Uint64("wal_start"))
	m.WalEnd = wire.LSN(r.Uint64("wal_end"))
	m.SendTime = wire.Timestamp(r.Int64("send_time"))
	m.Data = r.Rest()
}

func (m *XLogData) write(w *wire.Writer) {
	w.String("w")
	w.Uint64(uint64(m.WalStart))
	w.Uint64(uint64(m.WalEnd))
	w.Int64(int64(m.SendTime))
	w.Bytes(m.Data)
}

func (m *XLogData) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("wal_start")
	j.LSN(m.WalStart)
	j.Key("wal_end")
	j.LSN(m.WalEnd)
	j.Key("send_time")
	j.Timestamp(m.SendTime)
	j.Key("data")
	j.Hex("hex", m.Data)
	j.End()
}

// PrimaryKeepalive: Reports how far the server has read its WAL.
//
// PostgreSQL 10 and newer, sent by the server.
type PrimaryKeepalive struct {
	// End of the WAL that the server has sent.
	WalEnd wire.LSN

	// The server's clock when it sent this, in microseconds since 2000-01-01 UTC.
	SendTime wire.Timestamp

	// 1 asks for a status update at once.
	ReplyRequested uint8
}

// PrimaryKeepaliveReplyRequestedNoReplyIsNeeded is a value of PrimaryKeepalive.ReplyRequested: no
// reply is needed.
const PrimaryKeepaliveReplyRequestedNoReplyIsNeeded uint8 = 0

// PrimaryKeepaliveReplyRequestedReplyAtOnce is a value of PrimaryKeepalive.ReplyRequested: reply at
// once.
const PrimaryKeepaliveReplyRequestedReplyAtOnce uint8 = 1

func (m *PrimaryKeepalive) read(r *wire.Reader) {
	r.Constant("tag", "k")
	m.WalEnd = wire.LSN(r.Uint64("wal_end"))
	m.SendTime = wire.Timestamp(r.Int64("send_time"))
	m.ReplyRequested = wire.OneOf(r, "reply_requested", r.Uint8("reply_requested"), 0, 1)
}

func (m *PrimaryKeepalive) write(w *wire.Writer) {
	w.String("k")
	w.Uint64(uint64(m.WalEnd))
	w.Int64(int64(m.SendTime))
	w.Uint8(wire.CheckOneOf(w, "reply_requested", m.ReplyRequested, 0, 1))
}

func (m *PrimaryKeepalive) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("wal_end")
	j.LSN(m.WalEnd)
	j.Key("send_time")
	j.Timestamp(m.SendTime)
	j.Key("reply_requested")
	j.Uint(uint64(m.ReplyRequested))
	j.End()
}

// PrimaryStatusUpdate: Answers a status request: how far the primary has come.
//
// PostgreSQL 19 and newer, sent by the server.
type PrimaryStatusUpdate struct {
	// Latest WAL position of the primary.
	LSN wire.LSN

	// Oldest transaction that is committing on the primary.
	OldestFullXID uint64

	// Next transaction ID to be assigned.
	NextFullXID uint64

	// The server's clock when it sent this, in microseconds since 2000-01-01 UTC.
	SendTime wire.Timestamp
}

func (m *PrimaryStatusUpdate) read(r *wire.Reader) {
	r.Constant("tag", "s")
	m.LSN = wire.LSN(r.Uint64("lsn"))
	m.OldestFullXID = r.Uint64("oldest_full_xid")
	m.NextFullXID = r.Uint64("next_full_xid")
	m.SendTime = wire.Timestamp(r.Int64("send_time"))
}

func (m *PrimaryStatusUpdate) write(w *wire.Writer) {
	w.String("s")
	w.Uint64(uint64(m.LSN))
	w.Uint64(m.OldestFullXID)
	w.Uint64(m.NextFullXID)
	w.Int64(int64(m.SendTime))
}

func (m *PrimaryStatusUpdate) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("lsn")
	j.LSN(m.LSN)
	j.Key("oldest_full_xid")
	j.Uint(uint64(m.OldestFullXID))
	j.Key("next_full_xid")
	j.Uint(uint64(m.NextFullXID))
	j.Key("send_time")
	j.Timestamp(m.SendTime)
	j.End()
}

// StandbyStatusUpdate: Confirms what the client has received and made durable.
//
// PostgreSQL 10 and newer, sent by the client.
type StandbyStatusUpdate struct {
	// LSN after the last byte received.
	WriteLSN wire.LSN

	// LSN after the last byte made durable; only this moves the slot.
	FlushLSN wire.LSN

	// LSN after the last byte applied.
	ApplyLSN wire.LSN

	// The client's clock when it sent this, in microseconds since 2000-01-01 UTC.
	SendTime wire.Timestamp

	// 1 asks the server for a keepalive at once.
	ReplyRequested uint8
}

// StandbyStatusUpdateReplyRequestedNoReplyIsNeeded is a value of
// StandbyStatusUpdate.ReplyRequested: no reply is needed.
const StandbyStatusUpdateReplyRequestedNoReplyIsNeeded uint8 = 0

// StandbyStatusUpdateReplyRequestedReplyAtOnce is a value of StandbyStatusUpdate.ReplyRequested:
// reply at once.
const StandbyStatusUpdateReplyRequestedReplyAtOnce uint8 = 1

func (m *StandbyStatusUpdate) read(r *wire.Reader) {
	r.Constant("tag", "r")
	m.WriteLSN = wire.LSN(r.Uint64("write_lsn"))
	m.FlushLSN = wire.LSN(r.Uint64("flush_lsn"))
	m.ApplyLSN = wire.LSN(r.Uint64("apply_lsn"))
	m.SendTime = wire.Timestamp(r.Int64("send_time"))
	m.ReplyRequested = wire.OneOf(r, "reply_requested", r.Uint8("reply_requested"), 0, 1)
}

func (m *StandbyStatusUpdate) write(w *wire.Writer) {
	w.String("r")
	w.Uint64(uint64(m.WriteLSN))
	w.Uint64(uint64(m.FlushLSN))
	w.Uint64(uint64(m.ApplyLSN))
	w.Int64(int64(m.SendTime))
	w.Uint8(wire.CheckOneOf(w, "reply_requested", m.ReplyRequested, 0, 1))
}

func (m *StandbyStatusUpdate) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("write_lsn")
	j.LSN(m.WriteLSN)
	j.Key("flush_lsn")
	j.LSN(m.FlushLSN)
	j.Key("apply_lsn")
	j.LSN(m.ApplyLSN)
	j.Key("send_time")
	j.Timestamp(m.SendTime)
	j.Key("reply_requested")
	j.Uint(uint64(m.ReplyRequested))
	j.End()
}

// HotStandbyFeedback: Reports which transactions a standby still needs.
//
// PostgreSQL 10 and newer, sent by the client.
type HotStandbyFeedback struct {
	// The client's clock when it sent this, in microseconds since 2000-01-01 UTC.
	SendTime wire.Timestamp

	// Oldest transaction the standby needs, 0 when it needs none.
	Xmin uint32

	// Epoch of xmin.
	XminEpoch uint32

	// Oldest transaction its slots need in catalogs, 0 when they need none.
	CatalogXmin uint32

	// Epoch of catalog_xmin.
	CatalogXminEpoch uint32
}

func (m *HotStandbyFeedback) read(r *wire.Reader) {
	r.Constant("tag", "h")
	m.SendTime = wire.Timestamp(r.Int64("send_time"))
	m.Xmin = r.Uint32("xmin")
	m.XminEpoch = r.Uint32("xmin_epoch")
	m.CatalogXmin = r.Uint32("catalog_xmin")
	m.CatalogXminEpoch = r.Uint32("catalog_xmin_epoch")
}

func (m *HotStandbyFeedback) write(w *wire.Writer) {
	w.String("h")
	w.Int64(int64(m.SendTime))
	w.Uint32(m.Xmin)
	w.Uint32(m.XminEpoch)
	w.Uint32(m.CatalogXmin)
	w.Uint32(m.CatalogXminEpoch)
}

func (m *HotStandbyFeedback) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("send_time")
	j.Timestamp(m.SendTime)
	j.Key("xmin")
	j.Uint(uint64(m.Xmin))
	j.Key("xmin_epoch")
	j.Uint(uint64(m.XminEpoch))
	j.Key("catalog_xmin")
	j.Uint(uint64(m.CatalogXmin))
	j.Key("catalog_xmin_epoch")
	j.Uint(uint64(m.CatalogXminEpoch))
	j.End()
}

// PrimaryStatusRequest: Asks the primary for a status update.
//
// PostgreSQL 19 and newer, sent by the client.
type PrimaryStatusRequest struct {
	// The client's clock when it sent this, in microseconds since 2000-01-01 UTC.
	SendTime wire.Timestamp
}

func (m *PrimaryStatusRequest) read(r *wire.Reader) {
	r.Constant("tag", "p")
	m.SendTime = wire.Timestamp(r.Int64("send_time"))
}

func (m *PrimaryStatusRequest) write(w *wire.Writer) {
	w.String("p")
	w.Int64(int64(m.SendTime))
}

func (m *PrimaryStatusRequest) json(j *wire.JSON, layout *Layout) {
	j.Object()
	j.Key("send_time")
	j.Timestamp(m.SendTime)
	j.End()
}

// Frame is any of the messages.
type Frame interface {
	// MessageName returns the name of the message.
	MessageName() string

	json(j *wire.JSON, layout *Layout)
	index() int
}

// MessageName returns the name of the message.
func (*XLogData) MessageName() string {
	return "XLogData"
}

func (*XLogData) index() int {
	return 0
}

// MessageName returns the name of the message.
func (*PrimaryKeepalive) MessageName() string {
	return "PrimaryKeepalive"
}

func (*PrimaryKeepalive) index() int {
	return 1
}

// MessageName returns the name of the message.
func (*PrimaryStatusUpdate) MessageName() string {
	return "PrimaryStatusUpdate"
}

func (*PrimaryStatusUpdate) index() int {
	return 2
}

// MessageName returns the name of the message.
func (*StandbyStatusUpdate) MessageName() string {
	return "StandbyStatusUpdate"
}

func (*StandbyStatusUpdate) index() int {
	return 3
}

// MessageName returns the name of the message.
func (*HotStandbyFeedback) MessageName() string {
	return "HotStandbyFeedback"
}

func (*HotStandbyFeedback) index() int {
	return 4
}

// MessageName returns the name of the message.
func (*PrimaryStatusRequest) MessageName() string {
	return "PrimaryStatusRequest"
}

func (*PrimaryStatusRequest) index() int {
	return 5
}

// ToJSON returns a message as JSON, as the golden vectors have it.
func ToJSON(message Frame, layout *Layout) []byte {
	j := wire.NewJSON(message.MessageName())
	message.json(j, layout)
	return j.Finish()
}

// BuildMessage returns the bytes of a message.
func BuildMessage(message Frame, layout *Layout) ([]byte, error) {
	w := wire.NewWriter(message.MessageName())
	switch m := message.(type) {
	case *XLogData:
		m.write(w)
	case *PrimaryKeepalive:
		m.write(w)
	case *PrimaryStatusUpdate:
		m.write(w)
	case *StandbyStatusUpdate:
		m.write(w)
	case *HotStandbyFeedback:
		m.write(w)
	case *PrimaryStatusRequest:
		m.write(w)
	}
	return w.Finish()
}

// ParseMessage parses a message. Truncated, trailing or unknown bytes, values that are not defined,
// and messages that are not sent under these options are errors, with the path of the field and the
// offset. Bytes and text of the message share the memory of the payload.
func ParseMessage(payload []byte, layout *Layout) (Frame, error) {
	r := wire.NewReader(payload)
	var message Frame
	switch r.First() {
	case 'w':
		r.Begin("XLogData")
		m := new(XLogData)
		m.read(r)
		message = m
	case 'k':
		r.Begin("PrimaryKeepalive")
		m := new(PrimaryKeepalive)
		m.read(r)
		message = m
	case 's':
		r.Begin("PrimaryStatusUpdate")
		m := new(PrimaryStatusUpdate)
		m.read(r)
		message = m
	case 'r':
		r.Begin("StandbyStatusUpdate")
		m := new(StandbyStatusUpdate)
		m.read(r)
		message = m
	case 'h':
		r.Begin("HotStandbyFeedback")
		m := new(HotStandbyFeedback)
		m.read(r)
		message = m
	case 'p':
		r.Begin("PrimaryStatusRequest")
		m := new(PrimaryStatusRequest)
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
