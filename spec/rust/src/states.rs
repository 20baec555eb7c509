//! The state of a stream, as the specification's table of transitions moves it.

use crate::errors::{Error, Reason, Result};

/// The states in which a stream may be: those with the same parameters are not told apart.
///
/// A reader that begins in the middle of a stream does not know whether a transaction is open, and layouts depend on
/// the parameters alone.
#[derive(Clone, Debug)]
pub struct StreamState {
    sets: &'static [u64],
    transitions: &'static [&'static [(u8, u8)]],
    possible: u64,
}

impl StreamState {
    pub fn new(sets: &'static [u64], transitions: &'static [&'static [(u8, u8)]]) -> Self {
        let mut state = Self {
            sets,
            transitions,
            possible: 0,
        };
        state.possible = state.alike(0);
        state
    }

    /// Return the parameters that the state sets, as bits.
    pub fn sets(&self) -> u64 {
        self.sets[self.possible.trailing_zeros() as usize]
    }

    fn alike(&self, state: usize) -> u64 {
        let same = self
            .sets
            .iter()
            .enumerate()
            .filter(|(_, sets)| **sets == self.sets[state]);
        same.fold(0, |found, (number, _)| found | 1 << number)
    }

    /// Move to the state after a message; an error if it is not permitted.
    #[inline]
    pub fn advance(&mut self, message: usize, name: &str) -> Result<()> {
        let mut reached = 0;
        for &(before, after) in self.transitions[message] {
            if self.possible >> before & 1 != 0 {
                reached |= self.alike(usize::from(after));
            }
        }
        if reached == 0 {
            return Err(Error::new(Reason::State, name, None));
        }
        self.possible = reached;
        Ok(())
    }
}
