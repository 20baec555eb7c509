//! Parses a file of payloads, each after its length, again and again: `harness FILE VERSION [STREAMING]`.
//!
//! It prints `ready COUNT`, then answers each line `pass` with nanoseconds, the number of messages, and a number that
//! depends on them; and `tally` with JSON of what they hold.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::BufRead;
use std::time::Instant;

use pgoutput_codec::pgoutput::{
    Options, PgoutputMessage, Session, TupleData, TupleDataValue, UpdateOld,
};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let data = std::fs::read(&arguments[1]).expect("a file of payloads");
    let payloads = split(&data);
    let mut options = Options::default();
    for (name, value) in ["proto_version", "streaming"].iter().zip(&arguments[2..]) {
        options.set(name, value).expect("an option");
    }
    println!("ready {}", payloads.len());
    for line in std::io::stdin().lock().lines() {
        match line.expect("a line").as_str() {
            "pass" => pass(&payloads, options),
            "tally" => tally(&payloads, options),
            _ => {}
        }
    }
}

fn split(mut data: &[u8]) -> Vec<&[u8]> {
    let mut payloads = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk() {
        let (payload, after) = rest.split_at(u32::from_be_bytes(*length) as usize);
        payloads.push(payload);
        data = after;
    }
    payloads
}

fn pass(payloads: &[&[u8]], options: Options) {
    let mut session = Session::new(options).expect("options");
    let (mut count, mut sum) = (0_usize, 0_usize);
    let began = Instant::now();
    for payload in payloads {
        let message = session.parse(payload).expect("a message");
        count += 1;
        sum += message.index();
        black_box(message);
    }
    println!("{} {count} {sum}", began.elapsed().as_nanos());
}

fn tally(payloads: &[&[u8]], options: Options) {
    let mut session = Session::new(options).expect("options");
    let (mut kinds, mut found) = (BTreeMap::<char, usize>::new(), (0, 0));
    for payload in payloads {
        *kinds.entry(char::from(payload[0])).or_default() += 1;
        match session.parse(payload).expect("a message") {
            PgoutputMessage::Insert(insert) => count(&mut found, &insert.new),
            PgoutputMessage::Update(update) => {
                if let Some(UpdateOld::Key(old) | UpdateOld::Row(old)) = &update.old {
                    count(&mut found, old);
                }
                count(&mut found, &update.new);
            }
            PgoutputMessage::Delete(delete) => {
                let (pgoutput_codec::pgoutput::DeleteOld::Key(old)
                | pgoutput_codec::pgoutput::DeleteOld::Row(old)) = &delete.old;
                count(&mut found, old);
            }
            _ => {}
        }
    }
    let kinds: Vec<String> = kinds
        .iter()
        .map(|(kind, count)| format!("\"{kind}\": {count}"))
        .collect();
    let (messages, kinds, (values, bytes)) = (payloads.len(), kinds.join(", "), found);
    println!("{{\"messages\": {messages}, \"kinds\": {{{kinds}}}, \"values\": {values}, \"bytes\": {bytes}}}");
}

fn count(found: &mut (usize, usize), row: &TupleData<'_>) {
    found.0 += row.len();
    for value in row {
        if let TupleDataValue::Text(data) | TupleDataValue::Binary(data) = value {
            found.1 += data.len();
        }
    }
}
