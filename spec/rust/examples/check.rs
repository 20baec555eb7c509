//! Reads lines of `KIND SETTINGS HEX`, and answers each with a line of JSON: the fields, or why and where it is refused.
//!
//! - `message NAME=VALUE … HEX`, with options and the parameters that states set, such as
//!   `message proto_version=4 streaming=parallel in_stream=true 49…`
//! - `frame HEX`
//! - `connection SENDER STATE HEX`

use std::io::{self, BufRead, Write};

use pgoutput_codec::{connection, pgoutput, replication, Error};

fn main() -> io::Result<()> {
    let (input, output) = (io::stdin().lock(), io::stdout().lock());
    let mut output = io::BufWriter::new(output);
    for line in input.lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let answer = match words[..] {
            ["message", ref settings @ .., hex] => match layout(settings) {
                Ok(layout) => message(&layout, &bytes(hex)),
                Err(error) => refused(&error),
            },
            ["frame", hex] => frame(&bytes(hex)),
            ["connection", sender, state, hex] => on_connection(sender, state, &bytes(hex)),
            _ => format!("{{\"usage\":{line:?}}}"),
        };
        writeln!(output, "{answer}")?;
    }
    Ok(())
}

fn layout(settings: &[&str]) -> Result<pgoutput::Layout, Error> {
    let (mut options, mut sets) = (pgoutput::Options::default(), 0);
    for setting in settings {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        match pgoutput::STATE_PARAMETERS
            .iter()
            .position(|&each| each == name)
        {
            Some(bit) => sets |= u64::from(value == "true") << bit,
            None => options.set(name, value)?,
        }
    }
    Ok(options.layout(sets))
}

fn message(layout: &pgoutput::Layout, data: &[u8]) -> String {
    answer(pgoutput::parse(data, layout), |found| {
        (
            found.to_json(layout),
            pgoutput::build(found, layout).ok().as_deref() == Some(data),
        )
    })
}

fn frame(data: &[u8]) -> String {
    let layout = replication::Layout;
    answer(replication::parse(data, &layout), |found| {
        (
            found.to_json(&layout),
            replication::build(found, &layout).ok().as_deref() == Some(data),
        )
    })
}

fn on_connection(sender: &str, state: &str, data: &[u8]) -> String {
    let sender = if sender == "server" {
        connection::Sender::Server
    } else {
        connection::Sender::Client
    };
    let state = connection::State::ALL
        .iter()
        .find(|each| each.1 == state)
        .map_or(Default::default(), |each| each.0);
    answer(connection::parse(data, sender, state), |found| {
        (
            found.to_json(&connection::Layout),
            connection::build(found).ok().as_deref() == Some(data),
        )
    })
}

fn answer<M>(result: Result<M, Error>, print: impl Fn(&M) -> (String, bool)) -> String {
    match result {
        Ok(found) => match print(&found) {
            (json, true) => json,
            (json, false) => format!("{{\"built\":false,\"was\":{json}}}"),
        },
        Err(error) => refused(&error),
    }
}

fn refused(error: &Error) -> String {
    let reason = format!("{:?}", error.reason()).to_lowercase();
    let offset = error
        .offset()
        .map_or("null".into(), |offset| offset.to_string());
    format!(
        "{{\"refuse\":\"{reason}\",\"offset\":{offset},\"path\":\"{}\"}}",
        error.path()
    )
}

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap_or(0);
    (0..hex.len() / 2).map(|number| digit(2 * number)).collect()
}
