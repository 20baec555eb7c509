package wire

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
)

// Integer is an integer of the wire.
type Integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// OneOf checks a number, which was just read.
func OneOf[T Integer](r *Reader, name string, value T, values ...T) T {
	if !IsOneOf(value, values...) {
		r.fail(UnknownValue, name, r.at-binary.Size(value))
	}
	return value
}

// Bits checks the bits of a number, which was just read.
func Bits[T Integer](r *Reader, name string, value T, mask T) T {
	if value&^mask != 0 {
		r.fail(UnknownBits, name, r.at-binary.Size(value))
	}
	return value
}

// SetNumber sets an option to the number that its text is: digits, for a number of 32 bits.
func SetNumber(option *int, name, value string) error {
	number, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return UnknownOption(name)
	}
	*option = int(number)
	return nil
}

// SetFlag sets an option to the boolean that its text is, in the words that PostgreSQL accepts (defGetBoolean).
func SetFlag(option *bool, name, value string) error {
	switch strings.ToLower(value) {
	case "true", "on", "1":
		*option = true
	case "false", "off", "0":
		*option = false
	default:
		return UnknownOption(name)
	}
	return nil
}

// SetValue sets an option to its text, which must be one of its values.
func SetValue[T ~string](option *T, name, value string, values ...string) error {
	if !IsOneOf(value, values...) {
		return UnknownOption(name)
	}
	*option = T(value)
	return nil
}

// IsOneOf returns whether a value is one of some.
func IsOneOf[T comparable](value T, values ...T) bool {
	for _, each := range values {
		if value == each {
			return true
		}
	}
	return false
}

// Begins returns which of some messages of a connection bytes begin, by the tags and the constants after the length;
// -1 if none.
func Begins(data []byte, can [][2]int, begins [][2]string, length int) int {
	for _, each := range can {
		tag, code := begins[each[0]][0], begins[each[0]][1]
		at := len(tag) + length
		if len(data) == 0 || !bytes.HasPrefix(data, []byte(tag)) {
			continue
		}
		if code == "" || (len(data) >= at && bytes.HasPrefix(data[at:], []byte(code))) {
			return each[0]
		}
	}
	return -1
}
