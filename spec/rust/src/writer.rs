//! Writing bytes: values that a message cannot carry are errors.

use alloc::vec::Vec;

use crate::errors::{inside, Error, Reason, Result};
use crate::numbers::Number;
use crate::values::{Letter, Text};

/// Collects the bytes of a message.
pub struct Writer {
    data: Vec<u8>,
    blanks: Vec<Blank>,
}

/// Room for the length of a part that is not written yet.
struct Blank {
    path: &'static str,
    at: usize,
    size: usize,
}

impl Writer {
    pub fn new() -> Self {
        Self {
            data: Vec::with_capacity(64),
            blanks: Vec::new(),
        }
    }

    pub fn finish(self) -> Vec<u8> {
        self.data
    }

    pub fn len(&self) -> usize {
        self.data.len()
    }

    pub fn bytes(&mut self, data: &[u8]) -> Result<()> {
        self.data.extend_from_slice(data);
        Ok(())
    }

    pub fn number<N: Number>(&mut self, value: N) -> Result<()> {
        value.write(&mut self.data);
        Ok(())
    }

    pub fn one_of<N: Number>(&mut self, path: &str, value: N, values: &[N]) -> Result<()> {
        possible(path, values.contains(&value))?;
        self.number(value)
    }

    pub fn bits<N: Number>(&mut self, path: &str, value: N, mask: u64) -> Result<()> {
        possible(path, value.has_only(mask))?;
        self.number(value)
    }

    pub fn letter(&mut self, path: &str, value: Letter, letters: &[u8]) -> Result<()> {
        self.one_of(path, value.0, letters)
    }

    pub fn text(&mut self, path: &str, text: &Text<'_>) -> Result<()> {
        possible(path, !text.0.contains(&0))?;
        self.bytes(text.0)?;
        self.bytes(&[0])
    }

    pub fn nullable(&mut self, data: Option<&[u8]>) -> Result<()> {
        self.bytes(data.unwrap_or_default())
    }

    pub fn size<N: Number>(&mut self, path: &str, size: usize) -> Result<()> {
        let found = N::from_size(size as i128);
        possible(path, found.is_some())?;
        found.map_or(Ok(()), |size| self.number(size))
    }

    /// Leave room for the length of a part, which follows.
    pub fn blank<N: Number>(&mut self, path: &'static str) -> Result<()> {
        let (at, size) = (self.data.len(), N::SIZE);
        self.blanks.push(Blank { path, at, size });
        self.data.resize(at + size, 0);
        Ok(())
    }

    /// Write a part, and its length into the room that was left for it.
    pub fn area(
        &mut self,
        path: &str,
        length: &str,
        write: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let start = self.data.len();
        inside(path, write(self))?;
        let bytes = ((self.data.len() - start) as u64).to_be_bytes();
        if let Some(index) = self.blanks.iter().rposition(|each| each.path == length) {
            let Blank { at, size, .. } = self.blanks.remove(index);
            let (high, low) = bytes.split_at(bytes.len() - size);
            possible(length, high.iter().all(|&byte| byte == 0))?;
            self.data[at..at + size].copy_from_slice(low);
        }
        Ok(())
    }

    /// Check that a list has as many items as it must have.
    pub fn count(&self, path: &str, found: usize, expected: usize) -> Result<()> {
        possible(path, found == expected)
    }

    pub fn nullable_size<N: Number>(
        &mut self,
        path: &str,
        size: Option<usize>,
        absent: i64,
    ) -> Result<()> {
        let found = N::from_size(size.map_or(i128::from(absent), |size| size as i128));
        possible(path, found.is_some())?;
        found.map_or(Ok(()), |size| self.number(size))
    }

    /// Write the length of all that follows its own first byte, which is at an offset.
    pub fn close<N: Number>(&mut self, at: usize) -> Result<()> {
        let mut length = Vec::new();
        let found = N::from_size((self.data.len() - at) as i128);
        possible("length", found.is_some())?;
        if let Some(size) = found {
            size.write(&mut length);
        }
        self.data[at..at + N::SIZE].copy_from_slice(&length);
        Ok(())
    }

    /// Check that what was written from an offset on does not begin with the zero byte that ends a list.
    pub fn not_zero_at(&self, start: usize) -> Result<()> {
        possible("", self.data.get(start) != Some(&0))
    }
}

fn possible(path: &str, is_possible: bool) -> Result<()> {
    if is_possible {
        Ok(())
    } else {
        Err(Error::new(Reason::Build, path, None))
    }
}

/// Return a value that must be present under these options.
pub fn present<'v, T>(path: &str, value: &'v Option<T>) -> Result<&'v T> {
    value
        .as_ref()
        .ok_or_else(|| Error::new(Reason::Build, path, None))
}

/// Check that a value is absent, since these options do not carry it.
pub fn absent<T>(path: &str, value: &Option<T>) -> Result<()> {
    possible(path, value.is_none())
}

/// Return a number as one of another type.
pub fn narrowed<W: Number, N: Number>(path: &str, value: W) -> Result<N> {
    inside(
        path,
        N::from_size(value.size()).ok_or_else(|| Error::new(Reason::Build, "", None)),
    )
}
