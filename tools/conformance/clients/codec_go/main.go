// Follows a slot with the Go codec over pgx's connection, and reports what was committed: pgoutput conformance.
//
// Arguments: URL SLOT PUBLICATION PROTO_VERSION STREAMING BINARY MESSAGES TWO_PHASE ORIGIN TIMEOUT. A lost connection is
// opened again, and what comes again is reported once. A goroutine writes the lines, so that statuses are sent while
// nobody reads them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"pgoutput.test/codec/pgoutput"
	"pgoutput.test/codec/replication"
	"pgoutput.test/codec/wire"
)

const (
	statusInterval = time.Second
	pause          = 50 * time.Millisecond
	waiting        = 64 // transactions that wait to be written
)

// Errors of servers that are over soon: a slot in use, too many clients, a server that stops or starts.
var passing = []string{"55006", "53300", "57P01", "57P02", "57P03"}

var (
	errEnded  = errors.New("the server has ended the stream")
	errSilent = errors.New("nothing has come for longer than the timeout")
)

// writer writes lines to the standard output.
type writer struct {
	tasks chan *stored
	done  chan struct{} // closed once everything is written, after tasks was
	open  atomic.Int64  // the number of tasks that are not written yet
	lsn   atomic.Uint64 // the LSN up to which everything is written
}

func (w *writer) run() {
	defer close(w.done)
	for task := range w.tasks {
		var text []byte
		for _, each := range task.lines {
			data, err := json.Marshal(each)
			check(err)
			text = append(append(text, data...), '\n')
		}
		_, err := os.Stdout.Write(text)
		check(err)
		if task.end > 0 {
			w.lsn.Store(uint64(task.end))
		}
		w.open.Add(-1)
	}
}

// stream is one connection.
type stream struct {
	*pgconn.PgConn
	follower *follower
	writer   *writer
	told     wire.LSN // how far the server has sent its WAL
	sent     wire.LSN // what was confirmed last
	sentAt   time.Time
}

func main() {
	url, arguments := os.Args[1]+"?replication=database", os.Args[2:]
	version, err := strconv.Atoi(arguments[2])
	check(err)
	seconds, err := strconv.ParseFloat(arguments[8], 64)
	check(err)
	options := pgoutput.Options{ProtoVersion: version, Streaming: pgoutput.Streaming(arguments[3])}
	f := &follower{prepared: map[string][]line{}}
	w := &writer{tasks: make(chan *stored, waiting), done: make(chan struct{})}
	go w.run()
	for {
		check(f.connected(options))
		err := follow(url, start(arguments), f, w, time.Duration(seconds*float64(time.Second)))
		if !isLost(err) {
			close(w.tasks)
			<-w.done // what was committed before is reported
			check(err)
		}
		fmt.Fprintln(os.Stderr, "connecting again:", err)
		time.Sleep(pause)
	}
}

// start returns the command; what is not requested is left out, since older servers do not know all options.
func start(arguments []string) string {
	slot, publication, version := arguments[0], arguments[1], arguments[2]
	names := "\"" + strings.ReplaceAll(publication, "\"", "\"\"") + "\""
	options := []string{option("proto_version", version), option("publication_names", names)}
	defaults := []string{"off", "false", "false", "false", "any"}
	for at, name := range []string{"streaming", "binary", "messages", "two_phase", "origin"} {
		if value := arguments[3+at]; value != defaults[at] {
			options = append(options, option(name, value))
		}
	}
	return fmt.Sprintf("START_REPLICATION SLOT \"%s\" LOGICAL 0/0 (%s)", slot, strings.Join(options, ", "))
}

func option(name, value string) string {
	return name + " '" + strings.ReplaceAll(value, "'", "''") + "'"
}

// follow reads a connection until it is lost, or something is refused.
func follow(url, command string, f *follower, w *writer, timeout time.Duration) error {
	connecting, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	connection, err := pgconn.Connect(connecting, url)
	if err != nil {
		return err
	}
	defer connection.Conn().Close()
	s := &stream{PgConn: connection, follower: f, writer: w}
	s.Frontend().SendQuery(&pgproto3.Query{String: command})
	if err := s.Frontend().Flush(); err != nil {
		return err
	}
	isStarted := false
	for heard := time.Now(); ; {
		message, err := s.receive()
		switch m := message.(type) {
		case *pgproto3.CopyBothResponse:
			isStarted = true
		case *pgproto3.CopyData:
			err = s.frame(m.Data)
		case *pgproto3.ErrorResponse:
			err = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.CopyDone:
			err = errEnded
		}
		if err != nil {
			return err
		}
		if message != nil {
			heard = time.Now()
		} else if time.Since(heard) > timeout {
			return errSilent
		}
		if isStarted && (s.position() != s.sent || time.Since(s.sentAt) > statusInterval) {
			if err := s.confirm(); err != nil {
				return err
			}
		}
	}
}

// receive returns the next message, or nil if none comes for a moment.
func (s *stream) receive() (pgproto3.BackendMessage, error) {
	moment, cancel := context.WithTimeout(context.Background(), pause)
	defer cancel()
	message, err := s.ReceiveMessage(moment)
	if pgconn.Timeout(err) {
		return nil, nil
	}
	return message, err
}

func (s *stream) frame(data []byte) error {
	frame, err := replication.ParseMessage(data, &replication.Layout{})
	if err != nil {
		return err
	}
	switch m := frame.(type) {
	case *replication.PrimaryKeepalive:
		s.told = max(s.told, m.WalEnd)
		if m.ReplyRequested == replication.PrimaryKeepaliveReplyRequestedReplyAtOnce {
			return s.confirm()
		}
	case *replication.XLogData:
		task, err := s.follower.take(m.Data)
		if err != nil || task == nil {
			return err
		}
		return s.store(task)
	}
	return nil
}

// store has a transaction written; while that has to wait, the server receives a status, as a sign of life.
func (s *stream) store(task *stored) error {
	s.writer.open.Add(1)
	for {
		select {
		case s.writer.tasks <- task:
			return nil
		case <-time.After(statusInterval):
			if err := s.confirm(); err != nil {
				return err
			}
		}
	}
}

// position returns the LSN up to which nothing is left to be written.
func (s *stream) position() wire.LSN {
	isIdle := s.writer.open.Load() == 0 && !s.follower.isOpen
	written := wire.LSN(s.writer.lsn.Load())
	if isIdle {
		return max(written, s.told)
	}
	return written
}

func (s *stream) confirm() error {
	lsn, now := s.position(), wire.Timestamp(time.Now().UnixMicro()-946684800000000)
	status := &replication.StandbyStatusUpdate{WriteLSN: lsn, FlushLSN: lsn, ApplyLSN: lsn, SendTime: now}
	data, err := replication.BuildMessage(status, &replication.Layout{})
	if err != nil {
		return err
	}
	s.sent, s.sentAt = lsn, time.Now()
	s.Frontend().Send(&pgproto3.CopyData{Data: data})
	return s.Frontend().Flush()
}

// isLost returns whether an error is one of the connection, which may be opened again.
func isLost(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return slices.Contains(passing, refused.Code)
	}
	var network net.Error
	isEnd := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	return isEnd || errors.Is(err, errEnded) || errors.Is(err, errSilent) || errors.As(err, &network)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
