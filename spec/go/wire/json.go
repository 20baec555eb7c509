package wire

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"
)

// JSON is a JSON text that is being written, in the format of pgoutput decode.
type JSON struct {
	out  []byte
	ends []byte
}

// NewJSON begins the object of a message.
func NewJSON(name string) *JSON {
	j := &JSON{}
	j.Object()
	j.Key("message")
	j.text(name)
	return j
}

// Finish returns the text.
func (j *JSON) Finish() []byte {
	for len(j.ends) > 0 {
		j.End()
	}
	return j.out
}

func (j *JSON) begin(bracket, end byte) {
	j.comma()
	j.out = append(j.out, bracket)
	j.ends = append(j.ends, end)
}

func (j *JSON) comma() {
	if last := len(j.out) - 1; last >= 0 && j.out[last] != '{' && j.out[last] != '[' && j.out[last] != ':' {
		j.out = append(j.out, ',')
	}
}

func (j *JSON) value(text string) {
	j.comma()
	j.out = append(j.out, text...)
}

// Object begins an object; the fields of a message go into the one that was begun with its name.
func (j *JSON) Object() {
	if len(j.ends) == 1 && len(j.out) > 1 && j.out[len(j.out)-1] != ':' {
		j.ends = append(j.ends, 0)
		return
	}
	j.begin('{', '}')
}

// Array begins a list.
func (j *JSON) Array() {
	j.begin('[', ']')
}

// End ends what was begun last.
func (j *JSON) End() {
	last := len(j.ends) - 1
	if end := j.ends[last]; end != 0 {
		j.out = append(j.out, end)
	}
	j.ends = j.ends[:last]
}

// Key writes the key of a field.
func (j *JSON) Key(name string) {
	j.text(name)
	j.out = append(j.out, ':')
}

// Open begins an object with one key.
func (j *JSON) Open(name string) {
	j.begin('{', '}')
	j.Key(name)
}

// Null writes null.
func (j *JSON) Null() {
	j.value("null")
}

// Marker writes an object that says what a value without content is.
func (j *JSON) Marker(name string) {
	j.Open(name)
	j.out = append(j.out, "true"...)
	j.End()
}

// Int writes a signed number.
func (j *JSON) Int(value int64) {
	j.value(strconv.FormatInt(value, 10))
}

// Uint writes an unsigned number.
func (j *JSON) Uint(value uint64) {
	j.value(strconv.FormatUint(value, 10))
}

// Float writes a number in floating point; a NaN with other bits than PostgreSQL's own is an object with their digits.
func (j *JSON) Float(value float64) {
	switch bits := math.Float64bits(value); {
	case math.IsInf(value, 1):
		j.text("Infinity")
	case math.IsInf(value, -1):
		j.text("-Infinity")
	case bits == quietNaN:
		j.text("NaN")
	case math.IsNaN(value):
		j.Hex("hex", binary.BigEndian.AppendUint64(nil, bits))
	default:
		j.value(strconv.FormatFloat(value, 'e', -1, 64))
	}
}

// quietNaN has the bits of the NaN that PostgreSQL's get_float8_nan() returns.
const quietNaN = 0x7ff8 << 48

// LSN writes a position.
func (j *JSON) LSN(value LSN) {
	j.text(value.String())
}

// Timestamp writes a time.
func (j *JSON) Timestamp(value Timestamp) {
	j.text(value.String())
}

// Letter writes a letter.
func (j *JSON) Letter(value Letter) {
	j.text(value.String())
}

// Text writes text, or its bytes if it is not UTF-8.
func (j *JSON) Text(value Text) {
	j.TextOrHex("hex", value)
}

// Hex writes an object with the digits of bytes.
func (j *JSON) Hex(name string, data []byte) {
	j.Open(name)
	j.Digits(data)
	j.End()
}

// Digits writes the digits of bytes.
func (j *JSON) Digits(data []byte) {
	j.text(hex.EncodeToString(data))
}

// TextOrHex writes bytes as text, or an object with their digits if they are not UTF-8.
func (j *JSON) TextOrHex(name string, data []byte) {
	if utf8.Valid(data) {
		j.text(string(data))
	} else {
		j.Hex(name, data)
	}
}

func (j *JSON) text(text string) {
	quoted, _ := json.Marshal(text)
	j.value(string(quoted))
}
