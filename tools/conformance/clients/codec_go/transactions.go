package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"pgoutput.test/codec/pgoutput"
	"pgoutput.test/codec/wire"
)

// line is what is reported of a change.
type line struct {
	Transaction *string        `json:"transaction"`
	Table       string         `json:"table,omitempty"`
	Operation   string         `json:"operation"`
	New         map[string]any `json:"new"`
	Old         map[string]any `json:"old"`
	Prefix      *string        `json:"prefix,omitempty"`
	Content     *string        `json:"content,omitempty"`
}

// stored is what is to be stored next: the lines, and the LSN that may be confirmed then, or 0.
type stored struct {
	lines []line
	end   wire.LSN
}

// change is a change, or a Relation, and the xid of the subtransaction that made it.
type change struct {
	xid     uint32
	message pgoutput.PgoutputMessage
}

// follower gathers the messages of a stream until their transaction commits, as an apply worker does.
type follower struct {
	// What outlives a connection. Prepared transactions are in memory alone: a program that is to survive its own
	// end stores them before it confirms them.
	prepared map[string][]line
	ended    wire.LSN // the end of the last transaction that was handed on
	spoke    wire.LSN // the last logical message outside of transactions

	// What belongs to one.
	session   *pgoutput.Session
	relations map[uint32]*pgoutput.Relation
	isOpen    bool
	last      wire.LSN // what Begin says of the LSN in its Commit
	open      []change
	streams   map[uint32][]change
	streaming uint32
}

// connected begins a connection: what was not committed comes again.
func (f *follower) connected(options pgoutput.Options) (err error) {
	f.relations, f.streams = map[uint32]*pgoutput.Relation{}, map[uint32][]change{}
	f.isOpen, f.streaming = false, 0
	f.session, err = pgoutput.NewSession(options)
	return err
}

// take takes the next message, and returns what is to be stored, or nil.
func (f *follower) take(payload []byte) (*stored, error) {
	inStream := f.session.Layout().InStream
	message, err := f.session.Parse(bytes.Clone(payload)) // a message shares the memory of its payload
	if err != nil {
		return nil, err
	}
	switch m := message.(type) {
	case *pgoutput.Begin:
		return nil, f.begin(m.FinalLSN)
	case *pgoutput.BeginPrepare:
		return nil, f.begin(m.PrepareLSN)
	case *pgoutput.Commit:
		changes, err := f.end(m.CommitLSN)
		return f.commit(changes, m.EndLSN, err)
	case *pgoutput.Prepare:
		changes, err := f.end(m.PrepareLSN)
		return f.prepare(m.GID, changes, m.EndLSN, err)
	case *pgoutput.CommitPrepared:
		lines := f.prepared[m.GID.String()]
		delete(f.prepared, m.GID.String())
		return f.hand(lines, m.EndLSN), nil
	case *pgoutput.RollbackPrepared:
		delete(f.prepared, m.GID.String())
		return f.hand(nil, m.RollbackEndLSN), nil
	case *pgoutput.StreamStart:
		if m.XID == 0 {
			return nil, errors.New("a stream without an xid")
		}
		f.streaming = m.XID
		if m.FirstSegment == pgoutput.StreamStartFirstSegmentFirstSegment {
			delete(f.streams, m.XID)
		}
	case *pgoutput.StreamStop, *pgoutput.Origin, *pgoutput.Type:
	case *pgoutput.StreamCommit:
		return f.commit(f.stream(m.XID), m.EndLSN, nil)
	case *pgoutput.StreamPrepare:
		return f.prepare(m.GID, f.stream(m.XID), m.EndLSN, nil)
	case *pgoutput.StreamAbort:
		f.abort(m.XID, m.Subxid)
	case *pgoutput.Message:
		if m.Flags&pgoutput.MessageFlagsTransactional == 0 {
			return f.logical(m), nil
		}
		return nil, f.keep(inStream, m.XID, m)
	case *pgoutput.Relation:
		if !inStream && !f.isOpen {
			f.relations[m.RelationOID] = m
			return nil, nil
		}
		return nil, f.keep(inStream, m.XID, m)
	case *pgoutput.Insert:
		return nil, f.keep(inStream, m.XID, m)
	case *pgoutput.Update:
		return nil, f.keep(inStream, m.XID, m)
	case *pgoutput.Delete:
		return nil, f.keep(inStream, m.XID, m)
	case *pgoutput.Truncate:
		return nil, f.keep(inStream, m.XID, m)
	default:
		return nil, fmt.Errorf("%s: this program does not know what it means", message.MessageName())
	}
	return nil, nil
}

func (f *follower) begin(last wire.LSN) error {
	if f.isOpen {
		return errors.New("a Begin within a transaction")
	}
	if last == 0 {
		return errors.New("a Begin without an LSN")
	}
	f.isOpen, f.last, f.open = true, last, nil
	return nil
}

func (f *follower) end(last wire.LSN) ([]change, error) {
	if !f.isOpen || last != f.last {
		return nil, errors.New("the end of a transaction is not that of its Begin")
	}
	f.isOpen = false
	return f.open, nil
}

func (f *follower) stream(xid uint32) []change {
	changes := f.streams[xid]
	delete(f.streams, xid)
	return changes
}

func (f *follower) abort(xid, sub uint32) {
	if xid == sub {
		delete(f.streams, xid)
		return
	}
	f.streams[xid] = slices.DeleteFunc(f.streams[xid], func(each change) bool { return each.xid == sub })
}

// keep keeps a change until its transaction ends.
func (f *follower) keep(inStream bool, xid wire.Optional[uint32], message pgoutput.PgoutputMessage) error {
	switch {
	case inStream && xid.V == 0:
		return errors.New("a change without an xid in a stream")
	case inStream:
		f.streams[f.streaming] = append(f.streams[f.streaming], change{xid.V, message})
	case f.isOpen:
		f.open = append(f.open, change{0, message})
	default:
		return fmt.Errorf("%s outside of a transaction", message.MessageName())
	}
	return nil
}

// logical hands on a message outside of transactions, unless it was before: LSNs of such messages rise.
func (f *follower) logical(m *pgoutput.Message) *stored {
	if m.LSN <= f.spoke {
		return nil
	}
	f.spoke = m.LSN
	return &stored{lines: []line{described(m)}}
}

func (f *follower) commit(changes []change, end wire.LSN, err error) (*stored, error) {
	if err != nil {
		return nil, err
	}
	lines, err := f.lines(changes)
	if err != nil {
		return nil, err
	}
	return f.hand(lines, end), nil
}

func (f *follower) prepare(gid wire.Text, changes []change, end wire.LSN, err error) (*stored, error) {
	if err != nil {
		return nil, err
	}
	lines, err := f.lines(changes)
	if err != nil {
		return nil, err
	}
	if end > f.ended {
		f.prepared[gid.String()] = lines
	}
	return f.hand(nil, end), nil
}

// hand hands on the end of a transaction, unless that was done on an earlier connection: ends rise.
func (f *follower) hand(lines []line, end wire.LSN) *stored {
	if end <= f.ended {
		return nil
	}
	f.ended = end
	transaction := end.String()
	for at := range lines {
		lines[at].Transaction = &transaction
	}
	return &stored{lines, end}
}

// lines returns what is to be reported of the changes of a transaction, whose Relations hold from then on.
func (f *follower) lines(changes []change) (found []line, err error) {
	for _, each := range changes {
		switch m := each.message.(type) {
		case *pgoutput.Relation:
			f.relations[m.RelationOID] = m
		case *pgoutput.Message:
			found = append(found, described(m))
		case *pgoutput.Truncate:
			for _, oid := range m.RelationOIDs {
				found, err = f.append(found, oid, "truncate", nil, nil, false)
			}
		case *pgoutput.Insert:
			found, err = f.append(found, m.RelationOID, "insert", m.New, nil, false)
		case *pgoutput.Update:
			old := m.Old.V
			found, err = f.append(found, m.RelationOID, "update", m.New, old.Value, old.Kind == pgoutput.UpdateOldKey)
		case *pgoutput.Delete:
			isKey := m.Old.Kind == pgoutput.DeleteOldKey
			found, err = f.append(found, m.RelationOID, "delete", nil, m.Old.Value, isKey)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (f *follower) append(
	found []line, oid uint32, operation string, new, old pgoutput.TupleData, isKey bool,
) ([]line, error) {
	relation, known := f.relations[oid]
	if !known {
		return nil, fmt.Errorf("no Relation describes %d", oid)
	}
	schema := relation.Namespace.String()
	if schema == "" {
		schema = "pg_catalog"
	}
	made := line{Table: schema + "." + relation.Name.String(), Operation: operation}
	var err, second error
	made.New, err = row(relation, new, false)
	made.Old, second = row(relation, old, isKey)
	return append(found, made), errors.Join(err, second)
}

// row returns the values that were sent; columns beside a key are NULL on the wire, whatever they are.
func row(relation *pgoutput.Relation, values pgoutput.TupleData, isKey bool) (map[string]any, error) {
	if values == nil {
		return nil, nil
	}
	if len(values) != len(relation.Columns) {
		return nil, fmt.Errorf("%d values, %s has %d columns", len(values), relation.Name, len(relation.Columns))
	}
	found := map[string]any{}
	for at, column := range relation.Columns {
		if isKey && column.Flags&pgoutput.RelationColumnFlagsKey == 0 {
			continue
		}
		switch value := values[at]; value.Kind {
		case pgoutput.TupleDataValueNull:
			found[column.Name.String()] = nil
		case pgoutput.TupleDataValueText:
			found[column.Name.String()] = string(value.Value)
		case pgoutput.TupleDataValueBinary:
			found[column.Name.String()] = map[string]string{"binary": hex.EncodeToString(value.Value)}
		}
	}
	return found, nil
}

func described(m *pgoutput.Message) line {
	prefix, content := m.Prefix.String(), string(m.Content)
	if !utf8.Valid(m.Content) {
		content = "\\x" + hex.EncodeToString(m.Content)
	}
	return line{Operation: "message", Prefix: &prefix, Content: &content}
}
