//! Reading bytes: whatever is read is compared with the bytes that are left first.

use alloc::vec::Vec;

use crate::errors::{inside, item, Error, Reason, Result};
use crate::numbers::Number;
use crate::values::{Letter, Text};

/// Return a length as one of bytes in memory: what is too long for these is longer than any message.
#[inline]
fn in_memory(length: impl Into<u64>) -> usize {
    usize::try_from(length.into()).unwrap_or(usize::MAX)
}

/// Reads fields one after the other; errors have the path of the field and the offset of its first byte.
pub struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0 }
    }

    pub fn first(&self) -> Result<u8> {
        let found = self.data.first().copied();
        found.ok_or_else(|| Error::new(Reason::Empty, "", Some(0)))
    }

    pub fn peek(&self) -> Option<u8> {
        self.data.get(self.at).copied()
    }

    fn left(&self) -> usize {
        self.data.len() - self.at
    }

    #[cold]
    fn error(&self, reason: Reason, path: &str, back: usize) -> Error {
        Error::new(reason, path, Some(self.at - back))
    }

    #[inline]
    fn take(&mut self, path: &str, size: usize) -> Result<&'a [u8]> {
        match self.data[self.at..].get(..size) {
            Some(found) => {
                self.at += size;
                Ok(found)
            }
            None => Err(self.error(Reason::Truncated, path, 0)),
        }
    }

    #[inline]
    pub fn number<N: Number>(&mut self, path: &str) -> Result<N> {
        self.take(path, N::SIZE).map(N::read)
    }

    pub fn one_of<N: Number>(&mut self, path: &str, values: &[N]) -> Result<N> {
        let found = self.number(path)?;
        if values.contains(&found) {
            Ok(found)
        } else {
            Err(self.error(Reason::Value, path, N::SIZE))
        }
    }

    pub fn bits<N: Number>(&mut self, path: &str, mask: u64) -> Result<N> {
        let found = self.number::<N>(path)?;
        if found.has_only(mask) {
            Ok(found)
        } else {
            Err(self.error(Reason::Bits, path, N::SIZE))
        }
    }

    pub fn letter(&mut self, path: &str, letters: &[u8]) -> Result<Letter> {
        self.one_of(path, letters).map(Letter)
    }

    /// Read the tag of a choice.
    #[inline]
    pub fn tag(&mut self, path: &str, tags: &[u8]) -> Result<u8> {
        let found = self.number(path)?;
        if tags.contains(&found) {
            Ok(found)
        } else {
            Err(self.error(Reason::Kind, path, 1))
        }
    }

    /// Return the error for a tag, just read, that does not come under these options.
    pub fn refused(&self, path: &str, is_old: bool) -> Error {
        self.error(
            if is_old {
                Reason::Version
            } else {
                Reason::Option
            },
            path,
            1,
        )
    }

    pub fn constant(&mut self, path: &str, value: &[u8]) -> Result<()> {
        if self.take(path, value.len())? == value {
            Ok(())
        } else {
            Err(self.error(Reason::Constant, path, value.len()))
        }
    }

    /// Read the length of the message, from its own first byte on.
    pub fn length<N: Number>(&mut self, path: &str) -> Result<()> {
        let left = self.left();
        if self.number::<N>(path)?.size() == left as i128 {
            Ok(())
        } else {
            Err(self.error(Reason::Length, path, N::SIZE))
        }
    }

    pub fn text(&mut self, path: &str) -> Result<Text<'a>> {
        let rest = &self.data[self.at..];
        match rest.iter().position(|&byte| byte == 0) {
            Some(end) => {
                self.at += end + 1;
                Ok(Text(&rest[..end]))
            }
            None => Err(self.error(Reason::Truncated, path, 0)),
        }
    }

    pub fn block<const SIZE: usize>(&mut self, path: &str) -> Result<[u8; SIZE]> {
        let mut found = [0; SIZE];
        found.copy_from_slice(self.take(path, SIZE)?);
        Ok(found)
    }

    #[inline]
    pub fn bytes(&mut self, path: &str, size: impl Into<u64>) -> Result<&'a [u8]> {
        self.take(path, in_memory(size))
    }

    pub fn nullable(&mut self, path: &str, size: i64, absent: i64) -> Result<Option<&'a [u8]>> {
        match usize::try_from(size) {
            Ok(size) => self.take(path, size).map(Some),
            Err(_) if size == absent => Ok(None),
            Err(_) => Err(self.error(Reason::Truncated, path, 0)),
        }
    }

    pub fn rest(&mut self) -> Result<&'a [u8]> {
        self.take("", self.left())
    }

    /// Read a part that has as many bytes as a length says: they end as those of a message do.
    pub fn area<T>(
        &mut self,
        path: &str,
        size: impl Into<u64>,
        read: impl Fn(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let size = in_memory(size);
        if size > self.left() {
            return Err(self.error(Reason::Truncated, path, 0));
        }
        let data = self.data;
        self.data = &data[..self.at + size];
        let found = inside(path, read(self));
        self.data = data;
        found
    }

    /// Read items whose number was read before: each takes a byte at least.
    #[inline]
    pub fn items<T>(
        &mut self,
        path: &str,
        count: impl Into<u64>,
        read: impl Fn(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let count = in_memory(count);
        let mut found = Vec::with_capacity(count.min(self.left()));
        for index in 0..count {
            match read(self) {
                Ok(each) => found.push(each),
                Err(error) => return item(path, index, Err(error)),
            }
        }
        Ok(found)
    }

    pub fn items_to_end<T>(
        &mut self,
        path: &str,
        read: impl Fn(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        while self.left() > 0 {
            found.push(item(path, found.len(), read(self))?);
        }
        Ok(found)
    }

    pub fn items_until_zero<T>(
        &mut self,
        path: &str,
        read: impl Fn(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        while self.peek() != Some(0) {
            if self.left() == 0 {
                return Err(self.error(Reason::Truncated, path, 0));
            }
            found.push(item(path, found.len(), read(self))?);
        }
        self.at += 1;
        Ok(found)
    }

    pub fn end(&self) -> Result<()> {
        if self.left() == 0 {
            Ok(())
        } else {
            Err(self.error(Reason::Trailing, "", 0))
        }
    }
}
