// Follows a slot with pglogrepl and pgx, and reports what was committed: pgoutput conformance.
//
// Arguments: URL SLOT PUBLICATION PROTO_VERSION STREAMING BINARY MESSAGES TIMEOUT. The parser knows versions 1 and 2.
// What the library leaves to its user is done here as PostgreSQL's documentation asks: transactions are gathered until
// they commit, those that are streamed by their xids.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

type line struct {
	Transaction any            `json:"transaction"`
	Table       string         `json:"table,omitempty"`
	Operation   string         `json:"operation"`
	New         map[string]any `json:"new,omitempty"`
	Old         map[string]any `json:"old,omitempty"`
	Prefix      *string        `json:"prefix,omitempty"`
	Content     *string        `json:"content,omitempty"`
}

// spooled is a change, or a Relation, and the xid of the subtransaction that made it.
type spooled struct {
	xid     uint32
	message pglogrepl.Message
}

type follower struct {
	connection *pgconn.PgConn
	out        *bufio.Writer
	relations  map[uint32]*pglogrepl.RelationMessage
	open       []spooled
	isOpen     bool
	final      pglogrepl.LSN
	streams    map[uint32][]spooled
	inStream   bool
	streaming  uint32
	stored     pglogrepl.LSN
	told       pglogrepl.LSN
}

func main() {
	url, slot, publication, version := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	seconds, err := strconv.ParseFloat(os.Args[8], 64)
	check(err)
	timeout := time.Duration(seconds * float64(time.Second))
	ctx := context.Background()
	connection, err := pgconn.Connect(ctx, url+"?replication=database")
	check(err)
	quoted := "\"" + strings.ReplaceAll(publication, "\"", "\"\"") + "\""
	options := []string{"publication_names '" + strings.ReplaceAll(quoted, "'", "''") + "'"}
	if os.Args[5] == "off" {
		version = "1"
	} else {
		version = "2"
		options = append(options, "streaming 'on'")
	}
	options = append(options, "proto_version '"+version+"'")
	for at, name := range []string{"binary", "messages"} {
		if os.Args[6+at] == "true" {
			options = append(options, name+" 'true'")
		}
	}
	check(pglogrepl.StartReplication(ctx, connection, slot, 0, pglogrepl.StartReplicationOptions{PluginArgs: options}))
	f := &follower{
		connection: connection,
		out:        bufio.NewWriter(os.Stdout),
		relations:  map[uint32]*pglogrepl.RelationMessage{},
		streams:    map[uint32][]spooled{},
	}
	for {
		waiting, cancel := context.WithTimeout(ctx, timeout)
		received, err := connection.ReceiveMessage(waiting)
		cancel()
		check(err)
		switch message := received.(type) {
		case *pgproto3.CopyData:
			f.frame(message.Data, version)
		case *pgproto3.ErrorResponse:
			check(pgconn.ErrorResponseToPgError(message))
		case *pgproto3.CopyDone:
			check(errors.New("the server has ended the stream"))
		}
	}
}

func (f *follower) frame(data []byte, version string) {
	switch data[0] {
	case pglogrepl.PrimaryKeepaliveMessageByteID:
		keepalive, err := pglogrepl.ParsePrimaryKeepaliveMessage(data[1:])
		check(err)
		f.told = max(f.told, keepalive.ServerWALEnd)
		if keepalive.ReplyRequested {
			f.confirm()
		}
	case pglogrepl.XLogDataByteID:
		wal, err := pglogrepl.ParseXLogData(data[1:])
		check(err)
		var message pglogrepl.Message
		if version == "1" {
			message, err = pglogrepl.Parse(wal.WALData)
		} else {
			message, err = pglogrepl.ParseV2(wal.WALData, f.inStream)
		}
		check(err)
		f.take(message)
	}
}

func (f *follower) take(message pglogrepl.Message) {
	switch m := message.(type) {
	case *pglogrepl.BeginMessage:
		refuse(m.FinalLSN == 0, "a Begin without an LSN")
		f.open, f.isOpen, f.final = nil, true, m.FinalLSN
	case *pglogrepl.CommitMessage:
		refuse(!f.isOpen || m.CommitLSN != f.final, "a Commit that is not that of its Begin")
		refuse(m.Flags != 0, "a Commit with unknown flags")
		f.isOpen = false
		f.commit(f.open, m.TransactionEndLSN)
	case *pglogrepl.StreamStartMessageV2:
		refuse(f.inStream, "a Stream Start within a segment")
		refuse(m.Xid == 0, "a stream without an xid")
		f.inStream, f.streaming = true, m.Xid
		if m.FirstSegment == 1 {
			f.streams[m.Xid] = nil
		}
	case *pglogrepl.StreamStopMessageV2:
		refuse(!f.inStream, "a Stream Stop without a Stream Start")
		f.inStream = false
	case *pglogrepl.StreamCommitMessageV2:
		refuse(f.inStream, "a Stream Commit within a segment")
		f.commit(f.streams[m.Xid], m.TransactionEndLSN)
		delete(f.streams, m.Xid)
	case *pglogrepl.StreamAbortMessageV2:
		refuse(f.inStream, "a Stream Abort within a segment")
		f.abort(m.Xid, m.SubXid)
	case *pglogrepl.RelationMessage:
		f.relations[m.RelationID] = m
		f.keep(0, m)
	case *pglogrepl.RelationMessageV2:
		if !f.inStream {
			f.relations[m.RelationID] = &m.RelationMessage
		}
		f.keep(m.Xid, &m.RelationMessage)
	case *pglogrepl.InsertMessage, *pglogrepl.UpdateMessage, *pglogrepl.DeleteMessage, *pglogrepl.TruncateMessage:
		f.keep(0, m)
	case *pglogrepl.InsertMessageV2:
		f.keep(m.Xid, &m.InsertMessage)
	case *pglogrepl.UpdateMessageV2:
		f.keep(m.Xid, &m.UpdateMessage)
	case *pglogrepl.DeleteMessageV2:
		f.keep(m.Xid, &m.DeleteMessage)
	case *pglogrepl.TruncateMessageV2:
		f.keep(m.Xid, &m.TruncateMessage)
	case *pglogrepl.LogicalDecodingMessage:
		f.logical(0, m)
	case *pglogrepl.LogicalDecodingMessageV2:
		f.logical(m.Xid, &m.LogicalDecodingMessage)
	}
}

func (f *follower) logical(xid uint32, m *pglogrepl.LogicalDecodingMessage) {
	if m.Transactional {
		f.keep(xid, m)
		return
	}
	f.write(described(nil, m))
	check(f.out.Flush())
}

func (f *follower) keep(xid uint32, message pglogrepl.Message) {
	if f.inStream {
		refuse(xid == 0, "a change without an xid in a stream")
		f.streams[f.streaming] = append(f.streams[f.streaming], spooled{xid, message})
	} else if f.isOpen {
		f.open = append(f.open, spooled{0, message})
	} else {
		_, isRelation := message.(*pglogrepl.RelationMessage)
		refuse(!isRelation, "a change outside of a transaction")
	}
}

func (f *follower) abort(xid, sub uint32) {
	if xid == sub {
		delete(f.streams, xid)
		return
	}
	kept := f.streams[xid][:0]
	for _, each := range f.streams[xid] {
		if each.xid != sub {
			kept = append(kept, each)
		}
	}
	f.streams[xid] = kept
}

func (f *follower) commit(changes []spooled, end pglogrepl.LSN) {
	for _, each := range changes {
		f.report(end.String(), each.message)
	}
	check(f.out.Flush())
	f.stored = max(f.stored, end)
	f.confirm()
}

func (f *follower) confirm() {
	position := f.stored
	if !f.isOpen {
		position = max(position, f.told)
	}
	status := pglogrepl.StandbyStatusUpdate{
		WALWritePosition: position, WALFlushPosition: position, WALApplyPosition: position,
	}
	check(pglogrepl.SendStandbyStatusUpdate(context.Background(), f.connection, status))
}

func (f *follower) report(transaction string, message pglogrepl.Message) {
	switch m := message.(type) {
	case *pglogrepl.RelationMessage:
		f.relations[m.RelationID] = m
	case *pglogrepl.InsertMessage:
		relation := f.relation(m.RelationID)
		f.write(line{Transaction: transaction, Table: name(relation), Operation: "insert", New: row(relation, m.Tuple, 0)})
	case *pglogrepl.UpdateMessage:
		relation := f.relation(m.RelationID)
		found := line{Transaction: transaction, Table: name(relation), Operation: "update", New: row(relation, m.NewTuple, 0)}
		found.Old = row(relation, m.OldTuple, m.OldTupleType)
		f.write(found)
	case *pglogrepl.DeleteMessage:
		relation := f.relation(m.RelationID)
		old := row(relation, m.OldTuple, m.OldTupleType)
		f.write(line{Transaction: transaction, Table: name(relation), Operation: "delete", Old: old})
	case *pglogrepl.TruncateMessage:
		for _, id := range m.RelationIDs {
			f.write(line{Transaction: transaction, Table: name(f.relation(id)), Operation: "truncate"})
		}
	case *pglogrepl.LogicalDecodingMessage:
		f.write(described(transaction, m))
	}
}

func (f *follower) relation(id uint32) *pglogrepl.RelationMessage {
	relation, known := f.relations[id]
	if !known {
		check(fmt.Errorf("no Relation describes %d", id))
	}
	return relation
}

func (f *follower) write(found line) {
	if found.Operation == "insert" || found.Operation == "update" {
		if found.New == nil {
			found.New = map[string]any{}
		}
	}
	data, err := json.Marshal(found)
	check(err)
	_, err = f.out.Write(append(data, '\n'))
	check(err)
}

func described(transaction any, m *pglogrepl.LogicalDecodingMessage) line {
	content := string(m.Content)
	if !utf8.Valid(m.Content) {
		content = "\\x" + hex.EncodeToString(m.Content)
	}
	prefix := m.Prefix
	return line{Transaction: transaction, Operation: "message", Prefix: &prefix, Content: &content}
}

func name(relation *pglogrepl.RelationMessage) string {
	return relation.Namespace + "." + relation.RelationName
}

func row(relation *pglogrepl.RelationMessage, tuple *pglogrepl.TupleData, kind uint8) map[string]any {
	if tuple == nil {
		return nil
	}
	found := map[string]any{}
	for at, column := range tuple.Columns {
		described := relation.Columns[at]
		if kind == pglogrepl.UpdateMessageTupleTypeKey && described.Flags&1 == 0 {
			continue
		}
		switch column.DataType {
		case pglogrepl.TupleDataTypeNull:
			found[described.Name] = nil
		case pglogrepl.TupleDataTypeText:
			found[described.Name] = string(column.Data)
		case pglogrepl.TupleDataTypeBinary:
			found[described.Name] = map[string]string{"binary": hex.EncodeToString(column.Data)}
		}
	}
	return found
}

func refuse(isWrong bool, what string) {
	if isWrong {
		check(errors.New(what))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
