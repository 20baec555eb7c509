// Command harness parses a file of payloads, each after its length, again and again: harness FILE VERSION [STREAMING].
//
// It prints "ready COUNT", then answers each line "pass" with nanoseconds, the number of messages, and a number that
// depends on them; "allocated" with the allocations of a pass and their bytes; and "tally" with JSON of what they hold.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"pgoutput.test/codec/pgoutput"
)

type tally struct {
	Messages int            `json:"messages"`
	Kinds    map[string]int `json:"kinds"`
	Values   int            `json:"values"`
	Bytes    int            `json:"bytes"`
}

func main() {
	payloads := read(os.Args[1])
	version, err := strconv.Atoi(os.Args[2])
	check(err)
	options := pgoutput.Options{ProtoVersion: version}
	if len(os.Args) > 3 {
		options.Streaming = pgoutput.Streaming(os.Args[3])
	}
	fmt.Printf("ready %d\n", len(payloads))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "tally":
			found := tally{Messages: len(payloads), Kinds: map[string]int{}}
			for _, payload := range payloads {
				found.Kinds[string(rune(payload[0]))]++
			}
			parse(payloads, options, found.add)
			text, _ := json.Marshal(found)
			fmt.Println(string(text))
		case "allocated":
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			parse(payloads, options, func(pgoutput.PgoutputMessage) {})
			runtime.ReadMemStats(&after)
			fmt.Println(after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc)
		case "pass":
			count, sum := 0, 0
			began := time.Now()
			parse(payloads, options, func(message pgoutput.PgoutputMessage) {
				count++
				sum += len(message.MessageName())
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

func parse(payloads [][]byte, options pgoutput.Options, use func(pgoutput.PgoutputMessage)) {
	session, err := pgoutput.NewSession(options)
	check(err)
	for _, payload := range payloads {
		message, err := session.Parse(payload)
		check(err)
		use(message)
	}
}

func (t *tally) add(message pgoutput.PgoutputMessage) {
	switch m := message.(type) {
	case *pgoutput.Insert:
		t.row(m.New)
	case *pgoutput.Update:
		t.row(m.Old.V.Value)
		t.row(m.New)
	case *pgoutput.Delete:
		t.row(m.Old.Value)
	}
}

func (t *tally) row(values pgoutput.TupleData) {
	t.Values += len(values)
	for i := range values {
		t.Bytes += len(values[i].Value)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
