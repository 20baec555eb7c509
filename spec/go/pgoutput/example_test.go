package pgoutput_test

import (
	"bytes"
	"errors"
	"fmt"

	"pgoutput.test/codec/pgoutput"
	"pgoutput.test/codec/wire"
)

func Example() {
	session, err := pgoutput.NewSession(pgoutput.Options{ProtoVersion: 4, Streaming: pgoutput.StreamingParallel})
	if err != nil {
		panic(err)
	}
	payload := []byte("I\x00\x00\x40\x01N\x00\x02t\x00\x00\x00\x015n")
	message, err := session.Parse(payload)
	if err != nil {
		panic(err)
	}
	insert := message.(*pgoutput.Insert)
	fmt.Println(insert.RelationOID, insert.XID.Valid, insert.New[0].Kind, string(insert.New[0].Value))
	built, err := session.Build(message)
	fmt.Println(bytes.Equal(built, payload), err)

	_, err = session.Parse(payload[:9])
	var found *wire.Error
	fmt.Println(errors.As(err, &found), found.Reason, found)
	// Output:
	// 16385 false t 5
	// true <nil>
	// true truncated Insert.new.columns[0].length at byte 9: the bytes end here
}
