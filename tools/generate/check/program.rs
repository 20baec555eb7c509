//! Reads lines of settings and hexadecimal digits, and answers each with a line of JSON: the fields, or why and where the
//! bytes are refused, or what is wrong with the line.
//!
$usage

use std::io::{self, BufRead, Write};

use $package::{$modules, Error};

fn main() -> io::Result<()> {
    let mut output = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let (Ok(answer) | Err(answer)) = answer(&line?);
        writeln!(output, "{answer}")?;
    }
    Ok(())
}

fn answer(line: &str) -> Result<String, String> {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
$cases
        _ => Err(wrong("line", line)),
    }
}

$readers
fn found(json: String, built: Result<Vec<u8>, Error>, data: &[u8]) -> String {
    if built.as_deref() == Ok(data) {
        json
    } else {
        format!("{{\"built\":false,\"was\":{json}}}")
    }
}

fn refused(error: Error) -> String {
    let reason = format!("{:?}", error.reason()).to_lowercase();
    let offset = error
        .offset()
        .map_or("null".into(), |offset| offset.to_string());
    let path = quoted(error.path());
    format!("{{\"refuse\":\"{reason}\",\"offset\":{offset},\"path\":{path}}}")
}

fn wrong(what: &str, text: &str) -> String {
    let problem = quoted(&format!("not a {what}: {text}"));
    format!("{{\"error\":{problem}}}")
}

fn quoted(text: &str) -> String {
    let mut found = String::from("\"");
    for each in text.chars() {
        match each {
            '"' | '\\' => found.extend(['\\', each]),
            ' '.. => found.push(each),
            _ => found += &format!("\\u{:04x}", u32::from(each)),
        }
    }
    found + "\""
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u8>> = hex
        .chars()
        .map(|digit| Some(digit.to_digit(16)? as u8))
        .collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => {
            Ok(digits.chunks(2).map(|two| two[0] << 4 | two[1]).collect())
        }
        _ => Err(wrong("number of hexadecimal digits for whole bytes", hex)),
    }
}
