// Command check reads lines of settings and hexadecimal digits, and answers each with a line of JSON: the fields, or why
// and where the bytes are refused.
//
//	message NAME=VALUE ... HEX
//	connection SENDER STATE HEX     for messages with a length
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
$imports	"strings"

	messages "$module"
	"$module/wire"
)

func main() {
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 1<<30)
	output := bufio.NewWriter(os.Stdout)
	defer output.Flush()
	for input.Scan() {
		words := strings.Split(input.Text(), " ")
		data, _ := hex.DecodeString(words[len(words)-1])
		fmt.Fprintln(output, answer(words[1:len(words)-1], data))
	}
}

$read
func found(json []byte, built []byte, err error, data []byte) string {
	if err == nil && bytes.Equal(built, data) {
		return string(json)
	}
	return fmt.Sprintf(`{"built":false,"was":%s}`, json)
}

func refused(err error) string {
	var found *wire.Error
	errors.As(err, &found)
	return fmt.Sprintf(`{"refuse":%q,"offset":%d,"path":%q}`, found.Reason, found.Offset, found.Path)
}
