package wire

import "math/bits"

// StreamState is the states in which a stream may be: those with the same parameters are not told apart, since a
// reader that begins in the middle of a stream does not know whether a transaction is open.
type StreamState struct {
	sets        []uint64
	transitions [][][2]int
	possible    uint64
}

// NewStreamState returns the initial state.
func NewStreamState(sets []uint64, transitions [][][2]int) StreamState {
	s := StreamState{sets: sets, transitions: transitions}
	s.possible = s.alike(0)
	return s
}

// Sets returns the parameters that the state sets, as bits.
func (s *StreamState) Sets() uint64 {
	return s.sets[bits.TrailingZeros64(s.possible)]
}

func (s *StreamState) alike(state int) uint64 {
	found := uint64(0)
	for number, sets := range s.sets {
		if sets == s.sets[state] {
			found |= 1 << number
		}
	}
	return found
}

// Advance moves to the state after a message, and returns whether that sets other parameters; it returns an error if
// the state does not permit the message.
func (s *StreamState) Advance(message int, name string) (bool, error) {
	reached := uint64(0)
	for _, step := range s.transitions[message] {
		if s.possible>>step[0]&1 != 0 {
			reached |= s.alike(step[1])
		}
	}
	if reached == 0 {
		return false, NotPermitted(name)
	}
	before := s.Sets()
	s.possible = reached
	return before != s.Sets(), nil
}
