// Command check reads lines of a kind, settings and hex, and answers each with a line of JSON: the fields, or why and
// where the bytes are refused.
//
//	message NAME=VALUE ... HEX     with options and the parameters that states set
//	frame HEX
//	connection SENDER STATE HEX
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"pgoutput.test/codec/connection"
	"pgoutput.test/codec/pgoutput"
	"pgoutput.test/codec/replication"
	"pgoutput.test/codec/wire"
)

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<30)
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	for input.Scan() {
		words := strings.Split(input.Text(), " ")
		data, _ := hex.DecodeString(words[len(words)-1])
		fmt.Fprintln(output, answer(words, data))
	}
}

func answer(words []string, data []byte) string {
	switch words[0] {
	case "message":
		layout, err := layoutOf(words[1 : len(words)-1])
		if err != nil {
			return refused(err)
		}
		message, err := pgoutput.ParseMessage(data, layout)
		if err != nil {
			return refused(err)
		}
		built, err := pgoutput.BuildMessage(message, layout)
		return found(pgoutput.ToJSON(message, layout), err == nil && bytes.Equal(built, data))
	case "frame":
		layout := &replication.Layout{}
		message, err := replication.ParseMessage(data, layout)
		if err != nil {
			return refused(err)
		}
		built, err := replication.BuildMessage(message, layout)
		return found(replication.ToJSON(message, layout), err == nil && bytes.Equal(built, data))
	}
	sender := connection.SenderClient
	if words[1] == "server" {
		sender = connection.SenderServer
	}
	state := connection.State(slices.Index(connection.States, words[2]))
	message, err := connection.ParseMessage(data, sender, state)
	if err != nil {
		return refused(err)
	}
	built, err := connection.BuildMessage(message)
	return found(connection.ToJSON(message, &connection.Layout{}), err == nil && bytes.Equal(built, data))
}

func layoutOf(settings []string) (*pgoutput.Layout, error) {
	options, sets := pgoutput.Options{}, uint64(0)
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		if bit := slices.Index(pgoutput.StateParameters, name); bit < 0 {
			if err := options.Set(name, value); err != nil {
				return nil, err
			}
		} else if value == "true" {
			sets |= 1 << bit
		}
	}
	return options.Layout(sets), nil
}

func found(json []byte, isBuilt bool) string {
	if isBuilt {
		return string(json)
	}
	return fmt.Sprintf(`{"built":false,"was":%s}`, json)
}

func refused(err error) string {
	var found *wire.Error
	errors.As(err, &found)
	return fmt.Sprintf(`{"refuse":%q,"offset":%d,"path":%q}`, found.Reason, found.Offset, found.Path)
}
