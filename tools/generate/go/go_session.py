"""The type Session in Go, which follows the state of a stream of messages."""

from string import Template
from typing import Final

from tools.generate.go.go_module import GoModule
from tools.generate.go.go_names import exported

__all__ = ["GoSession"]

_TYPE: Final = """\
// Session parses and builds the messages of one connection in their order, by the state of the
// stream.
type Session struct {
	options Options

	state wire.StreamState

	layout *Layout
}

// NewSession starts a session; options that a server refuses are an error.
func NewSession(options Options) (*Session, error) {
	if err := options.Check(); err != nil {
		return nil, err
	}
	s := &Session{options: options, state: wire.NewStreamState(sets, transitions)}
	s.follow()
	return s, nil
}
"""
_METHODS: Final = Template("""\
// Layout returns the layout of the next message.
func (s *Session) Layout() *Layout {
	return s.layout
}

// Parse parses the next message; an error leaves the state unchanged.
func (s *Session) Parse(payload []byte) ($union, error) {
	message, err := ParseMessage(payload, s.layout)
	if err == nil {
		err = s.advance(message)
	}
	if err != nil {
		return nil, err
	}
	return message, nil
}

// Build builds the next message; an error leaves the state unchanged.
func (s *Session) Build(message $union) ([]byte, error) {
	payload, err := BuildMessage(message, s.layout)
	if err == nil {
		err = s.advance(message)
	}
	if err != nil {
		return nil, err
	}
	return payload, nil
}

func (s *Session) follow() {
	s.layout = s.options.Layout(s.state.Sets())
}

func (s *Session) advance(message $union) error {
	changed, err := s.state.Advance(message.index(), message.MessageName())
	if changed {
		s.follow()
	}
	return err
}
""")


class GoSession:
    """Writes Session, and the tables of the states that it follows."""

    def __init__(self, module: GoModule) -> None:
        self.module, self.spec, self.write = module, module.spec, module.write

    def all(self) -> None:
        """Write the tables, the type and its methods."""
        self._sets()
        self._transitions()
        self.write(_TYPE)
        self.write(_METHODS.substitute(union=self.module.union))

    def _sets(self) -> None:
        """Write which parameters the states set: the bits are in the order of the parameters that any state sets."""
        write, places = self.write, self.spec.places
        names = [each.name for each in self.spec.state_parameters]
        sets = [sum(1 << bit for bit, name in enumerate(names) if name in place.sets) for place in places]
        for bit, each in enumerate(self.spec.state_parameters):
            name = exported(each.name)
            about = f"{name} is the bit of a parameter that states of a stream set. {each.description or ''}".strip()
            write.constant(about, f"{name} uint64", 1 << bit)
        write.about("StateParameters are the names of these parameters, by the number of their bits.")
        quoted = ", ".join(f'"{name}"' for name in names)
        write(f"var StateParameters = []string{{{quoted}}}", "")
        about = "The parameters that each state of a stream sets, as bits"
        write.about(f"{about}: {', '.join(place.name for place in places)}.")
        write(f"var sets = []uint64{{{', '.join(map(str, sets))}}}", "")

    def _transitions(self) -> None:
        write, names = self.write, [place.name for place in self.spec.places]
        write.about("The states in which each message is permitted, each with the one that follows.")
        with write.definition("var transitions = [][][2]int{"):
            for message in self.spec.messages:
                steps = self.spec.steps(message).items()
                rows = (f"{{{names.index(before)}, {names.index(after)}}}" for before, after in steps)
                write(f"{{{', '.join(rows)}}},")
