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

// OptionNumber returns the number that the text of an option is.
func OptionNumber(name, value string) (int, error) {
	number, err := strconv.Atoi(value)
	if err != nil {
		return 0, UnknownOption(name)
	}
	return number, nil
}

// OptionFlag returns the boolean that the text of an option is, in the words that PostgreSQL accepts (defGetBoolean).
func OptionFlag(name, value string) (bool, error) {
	switch strings.ToLower(value) {
	case "true", "on", "1":
		return true, nil
	case "false", "off", "0":
		return false, nil
	}
	return false, UnknownOption(name)
}

// OptionValue returns an error if the text of an option is none of its values.
func OptionValue(name, value string, values ...string) error {
	if !IsOneOf(value, values...) {
		return UnknownOption(name)
	}
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
