package pgoutput_test

import (
	"bytes"
	"testing"

	"pgoutput.test/codec/pgoutput"
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
			if err != nil {
				continue
			}
			built, err := pgoutput.BuildMessage(message, layout)
			if err != nil || !bytes.Equal(built, data) {
				t.Errorf("%x: %v, built as %x", data, err, built)
			}
		}
	})
}
