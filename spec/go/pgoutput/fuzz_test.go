package pgoutput_test

import (
	"bytes"
	"testing"

	"pgoutput.test/codec/connection"
	"pgoutput.test/codec/pgoutput"
	"pgoutput.test/codec/replication"
)

// FuzzMessages reads any bytes under each of the options: what is read is built again byte for byte.
func FuzzMessages(f *testing.F) {
	f.Add([]byte("I\x00\x00\x40\x01N\x00\x02t\x00\x00\x00\x015n"))
	f.Add([]byte("U\x00\x00\x40\x01K\x00\x01t\x00\x00\x00\x015N\x00\x01u"))
	f.Add([]byte("R\x00\x00\x40\x01public\x00t\x00d\x00\x01\x01id\x00\x00\x00\x00\x17\xff\xff\xff\xff"))
	f.Add([]byte("A\x00\x00\x02\xbc\x00\x00\x02\xbd"))
	var layouts []*pgoutput.Layout
	for version := 1; version <= 4; version++ {
		for _, streaming := range []pgoutput.Streaming{"off", "on", "parallel"} {
			options := pgoutput.Options{ProtoVersion: version, Streaming: streaming}
			layouts = append(layouts, options.Layout(0), options.Layout(pgoutput.InStream))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, layout := range layouts {
			message, err := pgoutput.ParseMessage(data, layout)
			if err == nil {
				built, err := pgoutput.BuildMessage(message, layout)
				compare(t, data, built, err)
			}
		}
	})
}

// FuzzFrames does the same with frames.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("k\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x01"))
	layout := &replication.Layout{}
	f.Fuzz(func(t *testing.T, data []byte) {
		if frame, err := replication.ParseMessage(data, layout); err == nil {
			built, err := replication.BuildMessage(frame, layout)
			compare(t, data, built, err)
		}
	})
}

// FuzzConnection does the same with the messages of a connection, from both senders in each state.
func FuzzConnection(f *testing.F) {
	f.Add([]byte("D\x00\x00\x00\x0f\x00\x02\x00\x00\x00\x015\xff\xff\xff\xff"))
	f.Add([]byte("E\x00\x00\x00\x13SERROR\x00C42601\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for state := range connection.States {
			for _, sender := range []connection.Sender{connection.SenderServer, connection.SenderClient} {
				message, err := connection.ParseMessage(data, sender, connection.State(state))
				if err == nil {
					built, err := connection.BuildMessage(message)
					compare(t, data, built, err)
				}
			}
		}
	})
}

func compare(t *testing.T, data, built []byte, err error) {
	if err != nil || !bytes.Equal(built, data) {
		t.Errorf("%x: %v, built as %x", data, err, built)
	}
}
