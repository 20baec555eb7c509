package wire

import (
	"fmt"
	"strings"
)

// Reason is why bytes are refused, or why a message cannot be built.
type Reason string

// There are no bytes.
const Empty Reason = "empty"

// The first byte is the tag of no message that can come here.
const UnknownTag Reason = "tag"

// The protocol version does not have it.
const WrongVersion Reason = "version"

// Its option was not requested, or the state excludes it.
const NotRequested Reason = "option"

// The length is not that of the bytes.
const WrongLength Reason = "length"

// The bytes end before the field does.
const Truncated Reason = "truncated"

// A field that is always the same is not.
const WrongConstant Reason = "constant"

// A value that is not defined.
const UnknownValue Reason = "value"

// A bit that is not defined.
const UnknownBits Reason = "bits"

// The tag of no branch.
const UnknownKind Reason = "kind"

// Bytes follow the end of the message.
const Trailing Reason = "trailing"

// The state of the stream, or of the connection, does not permit the message.
const WrongState Reason = "state"

// A value that its message cannot carry.
const Unbuildable Reason = "build"

// Error is an error in bytes, or in a message that is to be built.
type Error struct {
	Reason Reason

	// The path of the field, such as Relation.columns[3].name.
	Path string

	// The offset of its first byte; -1 if the error is not in bytes.
	Offset int
}

var texts = map[Reason]string{
	Empty:         "there are no bytes",
	UnknownTag:    "no message begins with this tag here",
	WrongVersion:  "the protocol version does not have this",
	NotRequested:  "this comes only under other options, or in another state",
	WrongLength:   "the length is not that of the bytes",
	Truncated:     "the bytes end here",
	WrongConstant: "must be another constant",
	UnknownValue:  "a value that is not defined",
	UnknownBits:   "a bit that is not defined",
	UnknownKind:   "the tag of no branch",
	Trailing:      "the message ends here, and bytes follow",
	WrongState:    "not permitted in this state",
	Unbuildable:   "the message cannot carry this value",
}

// Error returns where the error is, and what is wrong.
func (e *Error) Error() string {
	at := e.Path
	if e.Offset >= 0 {
		at = strings.TrimLeft(fmt.Sprintf("%s at byte %d", e.Path, e.Offset), " ")
	}
	return at + ": " + texts[e.Reason]
}

// RefusedOption returns the error for an option that this protocol version does not have.
func RefusedOption(name string) error {
	return &Error{WrongVersion, name, -1}
}

// UnknownOption returns the error for an option, or a value of it, that determines no layout.
func UnknownOption(name string) error {
	return &Error{UnknownValue, name, -1}
}

// NotPermitted returns the error for a message that cannot come in a state.
func NotPermitted(name string) error {
	return &Error{WrongState, name, -1}
}

// path collects the steps to a field; it is printed for errors only.
type path struct {
	steps [fewSteps]pathStep
	more  []pathStep
	depth int
	err   *Error
}

// fewSteps is how many steps of a path have room without an allocation; more holds the others.
const fewSteps = 12

type pathStep struct {
	name  string
	index int
}

// Push enters a field.
func (p *path) Push(name string) {
	if p.depth < fewSteps {
		p.steps[p.depth] = pathStep{name, -1}
	} else {
		p.more = append(p.more[:p.depth-fewSteps], pathStep{name, -1})
	}
	p.depth++
}

// Index enters an item of the list that was entered last; -1 is the list itself.
func (p *path) Index(index int) {
	if p.depth <= fewSteps {
		p.steps[p.depth-1].index = index
	} else {
		p.more[p.depth-1-fewSteps].index = index
	}
}

// Pop leaves it.
func (p *path) Pop() {
	p.depth--
}

// OK returns whether there was no error.
func (p *path) OK() bool {
	return p.err == nil
}

// fail notes the first error.
func (p *path) fail(reason Reason, name string, offset int) {
	if p.err != nil {
		return
	}
	text, few := "", min(p.depth, fewSteps)
	steps := append(append([]pathStep{}, p.steps[:few]...), p.more[:p.depth-few]...)
	for _, step := range append(steps, pathStep{name, -1}) {
		if step.name != "" {
			if text != "" {
				text += "."
			}
			text += step.name
		}
		if step.index >= 0 {
			text += fmt.Sprintf("[%d]", step.index)
		}
	}
	p.err = &Error{reason, text, offset}
}
