//! Reads lines of settings and hexadecimal digits, and answers each with a line of JSON: the fields, or why and where the
//! bytes are refused.
//!
//! - `message NAME=VALUE … HEX`, such as `message proto_version=1 4a…`
//! - `connection SENDER STATE HEX`, for messages with a length

use std::io::{self, BufRead, Write};

use $crate::{messages, Error};

fn main() -> io::Result<()> {
    let mut output = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let data = bytes(words[words.len() - 1]);
        match read(&words[1..words.len() - 1], &data) {
            Ok((json, true)) => writeln!(output, "{json}")?,
            Ok((json, false)) => writeln!(output, "{{\"built\":false,\"was\":{json}}}")?,
            Err(error) => writeln!(output, "{}", refused(&error))?,
        }
    }
    Ok(())
}

$read
fn refused(error: &Error) -> String {
    let reason = format!("{:?}", error.reason()).to_lowercase();
    let offset = error
        .offset()
        .map_or("null".into(), |offset| offset.to_string());
    let path = error.path();
    format!("{{\"refuse\":\"{reason}\",\"offset\":{offset},\"path\":\"{path}\"}}")
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap_or(0);
    (0..hex.len() / 2).map(|number| digit(2 * number)).collect()
}
