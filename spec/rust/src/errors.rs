//! Errors with their path and offset, and the checks that raise them.

use alloc::{boxed::Box, format, string::String};
use core::fmt;

/// Why bytes are refused, or a message cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// There are no bytes.
    Empty,
    /// The first byte is the tag of no message that can come here.
    Tag,
    /// The protocol version does not have it.
    Version,
    /// Its option was not requested, or the state excludes it.
    Option,
    /// The length is not that of the bytes.
    Length,
    /// The bytes end before the field does.
    Truncated,
    /// A field that is always the same is not.
    Constant,
    /// A value that is not defined.
    Value,
    /// A bit that is not defined.
    Bits,
    /// The tag of no branch.
    Kind,
    /// Bytes follow the end of the message.
    Trailing,
    /// The state of the stream, or of the connection, does not permit the message.
    State,
    /// A value that its message cannot carry.
    Build,
}

/// Bytes that are not a message, or a message that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Fault>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Fault {
    reason: Reason,
    path: String,
    offset: Option<usize>,
}

pub type Result<T> = core::result::Result<T, Error>;

impl Error {
    #[cold]
    pub(crate) fn new(reason: Reason, path: &str, offset: Option<usize>) -> Self {
        Self(Box::new(Fault {
            reason,
            path: path.into(),
            offset,
        }))
    }

    /// Return why.
    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// Return the path of the field, such as `Relation.columns[3].name`.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Return the offset of its first byte; None if the error is not in bytes.
    pub fn offset(&self) -> Option<usize> {
        self.0.offset
    }

    pub(crate) fn unknown_tag() -> Self {
        Self::new(Reason::Tag, "", Some(0))
    }

    pub(crate) fn not_permitted(name: &str) -> Self {
        Self::new(Reason::State, name, None)
    }

    pub(crate) fn not_sent(path: &str) -> Self {
        Self::new(Reason::Build, path, None)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.path)?;
        if let Some(offset) = self.0.offset {
            let space = if self.0.path.is_empty() { "" } else { " " };
            write!(f, "{space}at byte {offset}")?;
        }
        f.write_str(match self.0.reason {
            Reason::Empty => ": there are no bytes",
            Reason::Tag => ": no message begins with this tag here",
            Reason::Version => ": the protocol version does not have this",
            Reason::Option => ": this comes only under other options, or in another state",
            Reason::Length => ": the length is not that of the bytes",
            Reason::Truncated => ": the bytes end here",
            Reason::Constant => ": must be another constant",
            Reason::Value => ": a value that is not defined",
            Reason::Bits => ": a bit that is not defined",
            Reason::Kind => ": the tag of no branch",
            Reason::Trailing => ": the message ends here, and bytes follow",
            Reason::State => ": not permitted in this state",
            Reason::Build => ": the message cannot carry this value",
        })
    }
}

impl core::error::Error for Error {}

/// Put a step before the path of an error.
pub fn inside<T>(step: &str, result: Result<T>) -> Result<T> {
    result.map_err(|mut error| {
        let path = &mut error.0.path;
        let dot = if path.is_empty() || path.starts_with('[') || step.is_empty() {
            ""
        } else {
            "."
        };
        *path = format!("{step}{dot}{path}");
        error
    })
}

/// Put an item of a list before the path of an error.
pub fn item<T>(step: &str, index: usize, result: Result<T>) -> Result<T> {
    match result {
        Err(error) => inside(&format!("{step}[{index}]"), Err(error)),
        found => found,
    }
}

pub fn since(name: &str, version: u32, first: u32) -> Result<()> {
    asked_if(version >= first, Reason::Version, name)
}

pub fn asked(name: &str, is_asked: bool) -> Result<()> {
    asked_if(is_asked, Reason::Option, name)
}

fn asked_if(is_right: bool, reason: Reason, name: &str) -> Result<()> {
    if is_right {
        Ok(())
    } else {
        Err(Error::new(reason, name, Some(0)))
    }
}

pub fn known_version(version: u32, known: &[u32]) -> Result<()> {
    if known.contains(&version) {
        Ok(())
    } else {
        Err(Error::new(Reason::Version, "proto_version", None))
    }
}

/// Return the number that the text of an option is: digits, for a number of 32 bits.
pub fn option_number(name: &str, value: &str) -> Result<u32> {
    match value.parse() {
        Ok(number) if !value.starts_with('+') => Ok(number),
        _ => Err(unknown_option(name)),
    }
}

/// Return the boolean that the text of an option is, in the words that PostgreSQL accepts (`defGetBoolean`).
pub fn option_flag(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Ok(true),
        "false" | "off" | "0" => Ok(false),
        _ => Err(unknown_option(name)),
    }
}

/// Return the error for an option, or a value of it, that determines no layout.
pub fn unknown_option(name: &str) -> Error {
    Error::new(Reason::Value, name, None)
}

pub fn option_since(name: &str, version: u32, first: u32) -> Result<()> {
    if version >= first {
        Ok(())
    } else {
        Err(Error::new(Reason::Version, name, None))
    }
}

/// Return which of some messages of a connection bytes begin: the index of its tag and its constant after the length.
pub fn begins<S>(
    data: &[u8],
    can: &[(usize, S)],
    begins: &[(&[u8], &[u8])],
    length: usize,
) -> Result<usize> {
    if data.is_empty() {
        return Err(Error::new(Reason::Empty, "", Some(0)));
    }
    let found = can.iter().find(|(number, _)| {
        let (tag, code) = begins[*number];
        data.starts_with(tag)
            && (code.is_empty()
                || data
                    .get(tag.len() + length..)
                    .is_some_and(|rest| rest.starts_with(code)))
    });
    found
        .map(|each| each.0)
        .ok_or_else(|| Error::new(Reason::Tag, "", Some(0)))
}
