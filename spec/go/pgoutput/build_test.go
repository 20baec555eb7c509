package pgoutput_test

import (
	"encoding/json"
	"errors"
	"testing"

	"pgoutput.test/codec/connection"
	"pgoutput.test/codec/pgoutput"
	"pgoutput.test/codec/wire"
)

// TestContentThatWouldBeLost builds values whose Kind, or absence, excludes the content that they have.
func TestContentThatWouldBeLost(t *testing.T) {
	options := pgoutput.Options{ProtoVersion: 1}
	lost := wire.Optional[uint32]{V: 7}
	row := pgoutput.TupleData{{Kind: pgoutput.TupleDataValueNull, Value: []byte("5")}}
	old := wire.Optional[pgoutput.UpdateOld]{V: pgoutput.UpdateOld{Kind: pgoutput.UpdateOldKey}}
	for path, message := range map[string]pgoutput.PgoutputMessage{
		"Insert.new.columns[0]": &pgoutput.Insert{New: row},
		"Insert.xid":            &pgoutput.Insert{XID: lost},
		"Update.old":            &pgoutput.Update{Old: old},
	} {
		_, err := pgoutput.BuildMessage(message, options.Layout(0))
		check(t, path, err)
	}
	bytes := wire.Optional[[]byte]{V: []byte("5")}
	_, err := connection.BuildMessage(&connection.DataRow{Row: []wire.Optional[[]byte]{bytes}})
	check(t, "DataRow.row[0].value_length", err)
}

func check(t *testing.T, path string, err error) {
	var found *wire.Error
	if !errors.As(err, &found) || found.Reason != wire.Unbuildable || found.Path != path {
		t.Errorf("%s: %v", path, err)
	}
}

// TestUnknownKind prints a value whose Kind is none of its type's.
func TestUnknownKind(t *testing.T) {
	layout := (&pgoutput.Options{ProtoVersion: 1}).Layout(0)
	printed := pgoutput.ToJSON(&pgoutput.Insert{New: pgoutput.TupleData{{Kind: 'x'}}}, layout)
	if !json.Valid(printed) {
		t.Errorf("%s", printed)
	}
}

// TestRefusedOptions sets options to what they cannot be: they remain what they were.
func TestRefusedOptions(t *testing.T) {
	given := pgoutput.Options{ProtoVersion: 4, Streaming: pgoutput.StreamingOn}
	options := given
	for _, name := range []string{"proto_version", "streaming", "nothing"} {
		if err := options.Set(name, "often"); err == nil || options != given {
			t.Errorf("%s: %v, %v", name, err, options)
		}
	}
}

// TestErrorWithoutPath prints an error that is in no field.
func TestErrorWithoutPath(t *testing.T) {
	_, err := pgoutput.ParseMessage(nil, (&pgoutput.Options{ProtoVersion: 1}).Layout(0))
	if err == nil || err.Error() != "at byte 0: there are no bytes" {
		t.Errorf("%q", err)
	}
}
