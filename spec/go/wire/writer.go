package wire

import (
	"bytes"
	"encoding/binary"
	"math"
)

// Writer collects the bytes of a message.
type Writer struct {
	path
	data   []byte
	blanks []blank
}

// blank is room for the length of a part that is not written yet.
type blank struct {
	name     string
	at, size int
}

// NewWriter returns a writer of a message.
func NewWriter(name string) *Writer {
	w := &Writer{data: make([]byte, 0, 64)}
	w.Push(name)
	return w
}

// Finish returns the bytes, or the error.
func (w *Writer) Finish() ([]byte, error) {
	if w.err != nil {
		return nil, w.err
	}
	return w.data, nil
}

// Len returns the number of bytes so far.
func (w *Writer) Len() int {
	return len(w.data)
}

// Since refuses a message of a later protocol version.
func (w *Writer) Since(version, first int) {
	w.Possible("", version >= first)
}

// Possible notes an error unless a value is possible.
func (w *Writer) Possible(name string, isPossible bool) {
	if !isPossible {
		w.fail(Unbuildable, name, -1)
	}
}

// Present notes an error if a value is absent that these options carry.
func (w *Writer) Present(name string, isPresent bool) {
	w.Possible(name, isPresent)
}

// Absent notes an error if a value is present that these options do not carry.
func (w *Writer) Absent(name string, isPresent bool) {
	w.Possible(name, !isPresent)
}

// Bytes writes bytes.
func (w *Writer) Bytes(data []byte) {
	w.data = append(w.data, data...)
}

// String writes the bytes of a string.
func (w *Writer) String(data string) {
	w.data = append(w.data, data...)
}

// Uint8 writes an unsigned integer.
func (w *Writer) Uint8(value uint8) { w.data = append(w.data, value) }

// Uint16 writes an unsigned integer.
func (w *Writer) Uint16(value uint16) { w.data = binary.BigEndian.AppendUint16(w.data, value) }

// Uint32 writes an unsigned integer.
func (w *Writer) Uint32(value uint32) { w.data = binary.BigEndian.AppendUint32(w.data, value) }

// Uint64 writes an unsigned integer.
func (w *Writer) Uint64(value uint64) { w.data = binary.BigEndian.AppendUint64(w.data, value) }

// Int8 writes a signed integer.
func (w *Writer) Int8(value int8) { w.Uint8(uint8(value)) }

// Int16 writes a signed integer.
func (w *Writer) Int16(value int16) { w.Uint16(uint16(value)) }

// Int32 writes a signed integer.
func (w *Writer) Int32(value int32) { w.Uint32(uint32(value)) }

// Int64 writes a signed integer.
func (w *Writer) Int64(value int64) { w.Uint64(uint64(value)) }

// Float64 writes a number in floating point, with all of its bits.
func (w *Writer) Float64(value float64) { w.Uint64(math.Float64bits(value)) }

// CheckOneOf notes an error unless a number is one of some.
func CheckOneOf[T Integer](w *Writer, name string, value T, values ...T) T {
	w.Possible(name, IsOneOf(value, values...))
	return value
}

// CheckBits notes an error if a number has other bits.
func CheckBits[T Integer](w *Writer, name string, value T, mask T) T {
	w.Possible(name, value&^mask == 0)
	return value
}

// Narrowed returns a number as one of another type; it notes an error if that is another number.
func Narrowed[N, W Integer](w *Writer, name string, value W) N {
	w.Possible(name, W(N(value)) == value && (value < 0) == (N(value) < 0))
	return N(value)
}

// Letter writes one of some letters.
func (w *Writer) Letter(name string, value Letter, letters string) {
	w.Possible(name, bytes.IndexByte([]byte(letters), byte(value)) >= 0)
	w.Uint8(uint8(value))
}

// Text writes text and its NUL.
func (w *Writer) Text(name string, text Text) {
	w.Possible(name, bytes.IndexByte(text, 0) < 0)
	w.Bytes(text)
	w.Uint8(0)
}

// Size writes a count or a length, as an unsigned integer of some bytes.
func (w *Writer) Size(name string, bytes, size int) {
	w.number(name, bytes, int64(size), 8*bytes)
}

// NullableSize writes a length as a signed integer of some bytes, or what stands for absent bytes.
func (w *Writer) NullableSize(name string, bytes, size int, isPresent bool, absent int64) {
	if !isPresent {
		w.Absent(name, size > 0)
		w.number(name, bytes, absent, 8*bytes)
		return
	}
	w.number(name, bytes, int64(size), 8*bytes-1)
}

func (w *Writer) number(name string, bytes int, value int64, bits int) {
	w.Possible(name, value < 0 || bits >= 63 || value < 1<<bits)
	for shift := 8 * (bytes - 1); shift >= 0; shift -= 8 {
		w.Uint8(uint8(value >> shift))
	}
}

// Blank leaves room for the length of a part, which follows.
func (w *Writer) Blank(name string, size int) {
	w.blanks = append(w.blanks, blank{name, len(w.data), size})
	w.Size(name, size, 0)
}

// Area writes a part, and its length into the room that was left for it.
func (w *Writer) Area(name, length string, write func()) {
	start := len(w.data)
	w.Push(name)
	write()
	w.Pop()
	for i := len(w.blanks) - 1; i >= 0; i-- {
		if each := w.blanks[i]; each.name == length {
			w.blanks = append(w.blanks[:i], w.blanks[i+1:]...)
			w.fill(length, each.at, each.size, len(w.data)-start)
			return
		}
	}
}

// Close writes the length of all that follows its own first byte, which is at an offset.
func (w *Writer) Close(at, size int) {
	w.fill("length", at, size, len(w.data)-at)
}

// fill writes a length into the room that was left for it at an offset.
func (w *Writer) fill(name string, at, size, length int) {
	found := &Writer{path: w.path}
	found.Size(name, size, length)
	w.err = found.err
	copy(w.data[at:], found.data)
}

// NotZeroAt notes an error if what was written from an offset on begins with the zero byte that ends a list.
func (w *Writer) NotZeroAt(start int) {
	w.Possible("", start >= len(w.data) || w.data[start] != 0)
}
