// Generated from spec/pgoutput.yaml by: python -m tools.generate. Do not edit.

//! Reads lines of settings and hexadecimal digits, and answers each with a line of JSON: the fields, or why and where the
//! bytes are refused, or what is wrong with the line.
//!
//! - `message NAME=VALUE ... HEX`, with options and the parameters that states set
//! - `frame HEX`
//! - `connection SENDER STATE HEX`

use std::io::{self, BufRead, Write};

use pgoutput_codec::{connection, pgoutput, replication, Error};

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
        ["message", ref settings @ .., hex] => read_message(settings, &bytes(hex)?),
        ["frame", hex] => read_frame(&bytes(hex)?),
        ["connection", sender, state, hex] => read_connection(sender, state, &bytes(hex)?),
        _ => Err(wrong("line", line)),
    }
}

fn read_message(settings: &[&str], data: &[u8]) -> Result<String, String> {
    let (mut options, mut sets) = (pgoutput::Options::default(), 0);
    for setting in settings {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let mut parameters = pgoutput::STATE_PARAMETERS.iter();
        match parameters.position(|&each| each == name) {
            Some(bit) => {
                let is_set: bool = value.parse().map_err(|_| wrong("setting", setting))?;
                sets |= u64::from(is_set) << bit;
            }
            None => options.set(name, value).map_err(refused)?,
        }
    }
    let layout = options.layout(sets);
    let message = pgoutput::parse(data, &layout).map_err(refused)?;
    let built = pgoutput::build(&message, &layout);
    Ok(found(message.to_json(&layout), built, data))
}

fn read_frame(data: &[u8]) -> Result<String, String> {
    let layout = replication::Layout;
    let message = replication::parse(data, &layout).map_err(refused)?;
    let built = replication::build(&message, &layout);
    Ok(found(message.to_json(&layout), built, data))
}

fn read_connection(sender: &str, state: &str, data: &[u8]) -> Result<String, String> {
    let sender = match sender {
        "server" => connection::Sender::Server,
        "client" => connection::Sender::Client,
        _ => return Err(wrong("sender", sender)),
    };
    let mut states = connection::State::ALL.iter();
    let Some((state, _)) = states.find(|each| each.1 == state) else {
        return Err(wrong("state", state));
    };
    let message = connection::parse(data, sender, *state).map_err(refused)?;
    let built = connection::build(&message);
    let json = message.to_json(&connection::Layout);
    Ok(found(json, built, data))
}

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
