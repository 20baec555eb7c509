#![doc = include_str!("../README.md")]
//!
//! Whatever the bytes, reading ends with a message or with an [`Error`]: it does not panic, and allocates nothing by a
//! length that was not compared with the bytes that are left.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod connection;
#[allow(dead_code)] // other specifications use what these do not
mod errors;
#[allow(dead_code)]
mod json;
#[allow(dead_code)]
mod numbers;
pub mod pgoutput;
#[allow(dead_code)]
mod reader;
pub mod replication;
mod runtime;
mod states;
mod values;
#[allow(dead_code)]
mod writer;

pub use errors::{Error, Reason};
pub use values::{Float, Letter, Lsn, Text, Timestamp};
