// Parses a file of payloads with pglogrepl. See tools/benchmark/harness.py for what is said on stdin and stdout.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/jackc/pglogrepl"
)

type tally struct {
	Messages int            `json:"messages"`
	Kinds    map[string]int `json:"kinds"`
	Values   int            `json:"values"`
	Bytes    int            `json:"bytes"`
}

func main() {
	payloads := read(os.Args[1])
	visit := version1
	if os.Args[2] != "1" {
		visit = version2
	}
	fmt.Printf("ready %d\n", len(payloads))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "tally":
			counted := tally{Kinds: map[string]int{}}
			visit(payloads, counted.add)
			text, _ := json.Marshal(counted)
			fmt.Println(string(text))
		case "allocated":
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			visit(payloads, func(pglogrepl.Message) {})
			runtime.ReadMemStats(&after)
			fmt.Println(after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc)
		case "pass":
			count, sum := 0, 0
			began := time.Now()
			visit(payloads, func(message pglogrepl.Message) {
				count++
				sum += int(message.Type())
			})
			fmt.Println(time.Since(began).Nanoseconds(), count, sum)
		}
	}
}

func read(path string) [][]byte {
	data, err := os.ReadFile(path)
	check(err)
	var payloads [][]byte
	for len(data) > 0 {
		end := 4 + binary.BigEndian.Uint32(data)
		payloads = append(payloads, data[4:end])
		data = data[end:]
	}
	return payloads
}

func version1(payloads [][]byte, use func(pglogrepl.Message)) {
	for _, payload := range payloads {
		message, err := pglogrepl.Parse(payload)
		check(err)
		use(message)
	}
}

func version2(payloads [][]byte, use func(pglogrepl.Message)) {
	inStream := false
	for _, payload := range payloads {
		message, err := pglogrepl.ParseV2(payload, inStream)
		check(err)
		switch message.Type() {
		case pglogrepl.MessageTypeStreamStart:
			inStream = true
		case pglogrepl.MessageTypeStreamStop:
			inStream = false
		}
		use(message)
	}
}

func (t *tally) add(message pglogrepl.Message) {
	t.Messages++
	t.Kinds[string(rune(message.Type()))]++
	switch m := message.(type) {
	case *pglogrepl.InsertMessage:
		t.tuple(m.Tuple)
	case *pglogrepl.InsertMessageV2:
		t.tuple(m.Tuple)
	case *pglogrepl.UpdateMessage:
		t.tuple(m.OldTuple)
		t.tuple(m.NewTuple)
	case *pglogrepl.UpdateMessageV2:
		t.tuple(m.OldTuple)
		t.tuple(m.NewTuple)
	case *pglogrepl.DeleteMessage:
		t.tuple(m.OldTuple)
	case *pglogrepl.DeleteMessageV2:
		t.tuple(m.OldTuple)
	}
}

func (t *tally) tuple(data *pglogrepl.TupleData) {
	if data == nil {
		return
	}
	t.Values += len(data.Columns)
	for _, column := range data.Columns {
		t.Bytes += len(column.Data)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
