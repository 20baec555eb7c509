// Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

// Command check reads lines of settings and hexadecimal digits, and answers each with a line of JSON: the fields, or why
// and where the bytes are refused, or what is wrong with the line.
//
//	message NAME=VALUE ... HEX     with options and the parameters that states set
//	frame HEX
//	connection SENDER STATE HEX
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
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
		found, err := answer(input.Text())
		if err != nil {
			found = refused(err)
		}
		fmt.Fprintln(output, found)
	}
}

func answer(line string) (string, error) {
	words := strings.Split(line, " ")
	last := len(words) - 1
	data, err := hex.DecodeString(words[last])
	switch {
	case last > 0 && err != nil:
		return "", wrong("number of hexadecimal digits for whole bytes", words[last])
	case words[0] == "message" && last > 0:
		return readMessage(words[1:last], data)
	case words[0] == "frame" && last == 1:
		return readFrame(data)
	case words[0] == "connection" && last == 3:
		return readConnection(words[1], words[2], data)
	}
	return "", wrong("line", line)
}

func readMessage(settings []string, data []byte) (string, error) {
	options, sets := pgoutput.Options{}, uint64(0)
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		bit := slices.Index(pgoutput.StateParameters, name)
		switch {
		case bit < 0:
			if err := options.Set(name, value); err != nil {
				return "", err
			}
		case value == "true":
			sets |= 1 << bit
		case value != "false":
			return "", wrong("setting", setting)
		}
	}
	layout := options.Layout(sets)
	message, err := pgoutput.ParseMessage(data, layout)
	if err != nil {
		return "", err
	}
	built, err := pgoutput.BuildMessage(message, layout)
	return found(pgoutput.ToJSON(message, layout), built, err, data)
}

func readFrame(data []byte) (string, error) {
	layout := &replication.Layout{}
	message, err := replication.ParseMessage(data, layout)
	if err != nil {
		return "", err
	}
	built, err := replication.BuildMessage(message, layout)
	return found(replication.ToJSON(message, layout), built, err, data)
}

func readConnection(from, name string, data []byte) (string, error) {
	sender := connection.SenderClient
	if from == "server" {
		sender = connection.SenderServer
	} else if from != "client" {
		return "", wrong("sender", from)
	}
	state := slices.Index(connection.States, name)
	if state < 0 {
		return "", wrong("state", name)
	}
	message, err := connection.ParseMessage(data, sender, connection.State(state))
	if err != nil {
		return "", err
	}
	built, err := connection.BuildMessage(message)
	return found(connection.ToJSON(message, &connection.Layout{}), built, err, data)
}

func found(json []byte, built []byte, err error, data []byte) (string, error) {
	if err == nil && bytes.Equal(built, data) {
		return string(json), nil
	}
	return fmt.Sprintf(`{"built":false,"was":%s}`, json), nil
}

func refused(err error) string {
	var found *wire.Error
	if !errors.As(err, &found) {
		return printed(map[string]any{"error": err.Error()})
	}
	answer := map[string]any{"refuse": found.Reason, "offset": nil, "path": found.Path}
	if found.Offset >= 0 {
		answer["offset"] = found.Offset
	}
	return printed(answer)
}

func printed(answer map[string]any) string {
	text, _ := json.Marshal(answer)
	return string(text)
}

func wrong(what, text string) error {
	return fmt.Errorf("not a %s: %s", what, text)
}
