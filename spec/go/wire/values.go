// Package wire has what the generated packages share: values, errors with their path and offset, reading, writing.
package wire

import (
	"fmt"
	"strconv"
	"time"
)

// LSN is a position in the WAL (XLogRecPtr).
type LSN uint64

// String returns it as PostgreSQL prints it, such as 16/B374D848.
func (l LSN) String() string {
	return fmt.Sprintf("%X/%X", uint64(l)>>32, uint64(l)&0xFFFFFFFF)
}

// Timestamp is a number of microseconds since 2000-01-01 00:00 UTC (TimestampTz).
type Timestamp int64

// The limits of what a time of the years 1 to 9999 can be.
const (
	infinity  Timestamp = 1<<63 - 1
	earlier   Timestamp = -1 << 63
	firstTime Timestamp = -63082281600000000
	lastTime  Timestamp = 252455615999999999
)

// String returns ISO 8601 in UTC, infinity, or the number itself if its year is not in the range 1 to 9999.
func (t Timestamp) String() string {
	switch {
	case t == infinity:
		return "infinity"
	case t == earlier:
		return "-infinity"
	case t < firstTime || t > lastTime:
		return strconv.FormatInt(int64(t), 10)
	case t%1000000 == 0:
		return t.Time().Format("2006-01-02T15:04:05+00:00")
	}
	return t.Time().Format("2006-01-02T15:04:05.000000+00:00")
}

// Time returns it as a time in UTC, for years from 1 to 9999.
func (t Timestamp) Time() time.Time {
	seconds, micros := int64(t)/1000000, int64(t)%1000000
	return time.Unix(946684800+seconds, micros*1000).UTC()
}

// Letter is a byte that stands for a letter.
type Letter byte

// String returns the letter.
func (l Letter) String() string {
	return string(rune(l))
}

// Text is text without its NUL; it need not be UTF-8.
type Text []byte

// String returns it as a string.
func (t Text) String() string {
	return string(t)
}

// Optional is a value that may be absent.
type Optional[T any] struct {
	// The value, if it is present.
	V T

	// Whether it is present.
	Valid bool
}

// Some returns a value that is present.
func Some[T any](value T) Optional[T] {
	return Optional[T]{value, true}
}
