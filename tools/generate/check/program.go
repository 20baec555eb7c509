// Command check reads lines of settings and hexadecimal digits, and answers each with a line of JSON: the fields, or why
// and where the bytes are refused, or what is wrong with the line.
//
$usage
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"$slices
	"strings"

$imports
	"$package/wire"
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
$cases
	}
	return "", wrong("line", line)
}

$readers
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
