package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
)

// Reader reads fields one after the other. After an error it returns zero values; what is read is compared with the
// bytes that are left first.
type Reader struct {
	path
	data []byte
	at   int
}

// NewReader returns a reader of a message.
func NewReader(data []byte) *Reader {
	return &Reader{data: data}
}

// First returns the first byte, -1 if there is none.
func (r *Reader) First() int {
	if len(r.data) == 0 {
		return -1
	}
	return int(r.data[0])
}

// Begin begins a message.
func (r *Reader) Begin(name string) {
	r.Push(name)
}

// UnknownTag returns the error for bytes that begin no message.
func (r *Reader) UnknownTag() error {
	if len(r.data) == 0 {
		return &Error{Empty, "", 0}
	}
	return &Error{UnknownTag, "", 0}
}

// Since refuses a message of a later protocol version.
func (r *Reader) Since(version, first int) {
	if version < first {
		r.fail(WrongVersion, "", 0)
	}
}

// Asked refuses a message whose option was not requested.
func (r *Reader) Asked(isAsked bool) {
	if !isAsked {
		r.fail(NotRequested, "", 0)
	}
}

// Refuse refuses a tag, which was just read, that does not come under these options.
func (r *Reader) Refuse(name string, isOld bool) {
	if isOld {
		r.fail(WrongVersion, name, r.at-1)
	} else {
		r.fail(NotRequested, name, r.at-1)
	}
}

// Next returns whether a byte comes next.
func (r *Reader) Next(value byte) bool {
	return r.at < len(r.data) && r.data[r.at] == value
}

// take returns the next bytes, nil after an error.
func (r *Reader) take(name string, size int) []byte {
	if r.err != nil {
		return nil
	}
	if size > len(r.data)-r.at {
		r.fail(Truncated, name, r.at)
		return nil
	}
	r.at += size
	return r.data[r.at-size : r.at : r.at]
}

// Uint8 reads an unsigned integer.
func (r *Reader) Uint8(name string) uint8 {
	if found := r.take(name, 1); found != nil {
		return found[0]
	}
	return 0
}

// Uint16 reads an unsigned integer.
func (r *Reader) Uint16(name string) uint16 {
	if found := r.take(name, 2); found != nil {
		return binary.BigEndian.Uint16(found)
	}
	return 0
}

// Uint32 reads an unsigned integer.
func (r *Reader) Uint32(name string) uint32 {
	if found := r.take(name, 4); found != nil {
		return binary.BigEndian.Uint32(found)
	}
	return 0
}

// Uint64 reads an unsigned integer.
func (r *Reader) Uint64(name string) uint64 {
	if found := r.take(name, 8); found != nil {
		return binary.BigEndian.Uint64(found)
	}
	return 0
}

// Int8 reads a signed integer.
func (r *Reader) Int8(name string) int8 { return int8(r.Uint8(name)) }

// Int16 reads a signed integer.
func (r *Reader) Int16(name string) int16 { return int16(r.Uint16(name)) }

// Int32 reads a signed integer.
func (r *Reader) Int32(name string) int32 { return int32(r.Uint32(name)) }

// Int64 reads a signed integer.
func (r *Reader) Int64(name string) int64 { return int64(r.Uint64(name)) }

// Float64 reads a number in floating point, with all of its bits.
func (r *Reader) Float64(name string) float64 { return math.Float64frombits(r.Uint64(name)) }

// Letter reads one of some letters.
func (r *Reader) Letter(name, letters string) Letter {
	return r.letter(name, letters, UnknownValue)
}

// Tag reads the tag of a choice.
func (r *Reader) Tag(name, tags string) Letter {
	return r.letter(name, tags, UnknownKind)
}

func (r *Reader) letter(name, letters string, reason Reason) Letter {
	found := r.Uint8(name)
	if r.err == nil && strings.IndexByte(letters, found) < 0 {
		r.fail(reason, name, r.at-1)
	}
	return Letter(found)
}

// Constant reads bytes that are always the same.
func (r *Reader) Constant(name, value string) {
	if found := r.take(name, len(value)); found != nil && string(found) != value {
		r.fail(WrongConstant, name, r.at-len(value))
	}
}

// Length reads the length of the message, from its own first byte on.
func (r *Reader) Length(name string, size int) {
	left, length := len(r.data)-r.at, uint64(0)
	for _, each := range r.take(name, size) {
		length = length<<8 | uint64(each)
	}
	if length != uint64(left) {
		r.fail(WrongLength, name, r.at-size)
	}
}

// Text reads text up to its NUL.
func (r *Reader) Text(name string) Text {
	if r.err != nil {
		return nil
	}
	end := bytes.IndexByte(r.data[r.at:], 0)
	if end < 0 {
		r.fail(Truncated, name, r.at)
		return nil
	}
	found := r.take(name, end+1)
	return Text(found[:end:end])
}

// Block reads a fixed number of bytes; after an error they are zero.
func (r *Reader) Block(name string, size int) []byte {
	if found := r.take(name, size); found != nil {
		return found
	}
	return make([]byte, size)
}

// Bytes reads as many bytes as a length says.
func (r *Reader) Bytes(name string, size uint64) []byte {
	if r.err == nil && size > uint64(len(r.data)-r.at) {
		r.fail(Truncated, name, r.at)
	}
	return r.take(name, int(size))
}

// Nullable reads as many bytes as a length says, none if it stands for their absence.
func (r *Reader) Nullable(name string, size, absent int64) Optional[[]byte] {
	if size == absent {
		return Optional[[]byte]{}
	}
	if size < 0 {
		r.fail(Truncated, name, r.at)
		return Optional[[]byte]{}
	}
	return Some(r.Bytes(name, uint64(size)))
}

// Area reads a part that has as many bytes as a length says: they end as those of a message do.
func (r *Reader) Area(name string, size uint64, read func()) {
	if r.err == nil && size > uint64(len(r.data)-r.at) {
		r.fail(Truncated, name, r.at)
	}
	if r.err != nil {
		return
	}
	data := r.data
	r.data = data[:r.at+int(size)]
	r.Push(name)
	read()
	r.Pop()
	r.data = data
}

// Rest reads all bytes that are left.
func (r *Reader) Rest() []byte {
	return r.take("", len(r.data)-r.at)
}

// Room returns how many of some items to make room for: each takes a byte at least.
func (r *Reader) Room(count uint64) int {
	return int(min(count, uint64(len(r.data)-r.at)))
}

// More returns whether bytes are left.
func (r *Reader) More() bool {
	return r.err == nil && r.at < len(r.data)
}

// MoreBeforeZero returns whether another item comes before the zero byte that ends a list, which it reads.
func (r *Reader) MoreBeforeZero() bool {
	if r.err != nil {
		return false
	}
	if r.at == len(r.data) {
		r.Index(-1)
		r.fail(Truncated, "", r.at)
		return false
	}
	if r.data[r.at] == 0 {
		r.at++
		return false
	}
	return true
}

// End returns the error, if there was one; bytes that are left are one.
func (r *Reader) End() error {
	if r.at < len(r.data) {
		r.fail(Trailing, "", r.at)
	}
	if r.err != nil {
		return r.err
	}
	return nil
}
