//! Parses a file of payloads, each after its length, again and again: `harness FILE VERSION [STREAMING]`.
//!
//! It prints `ready COUNT`, then answers each line `pass` with nanoseconds, the number of messages, and a number that
//! depends on them; `allocated` with the allocations of a pass and their bytes; and `tally` with JSON of what they hold.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::BufRead;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use pgoutput_codec::pgoutput::{
    Options, PgoutputMessage, Session, TupleData, TupleDataValue, UpdateOld,
};

/// The system's allocator, which counts: memory is allocated by one thread.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
#[global_allocator]
static ALLOCATOR: Counting = Counting;

impl Counting {
    fn count(size: usize) {
        ALLOCATIONS.store(ALLOCATIONS.load(Relaxed) + 1, Relaxed);
        BYTES.store(BYTES.load(Relaxed) + size, Relaxed);
    }

    fn counts() -> (usize, usize) {
        (ALLOCATIONS.load(Relaxed), BYTES.load(Relaxed))
    }
}

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(layout.size());
        System.alloc(layout)
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count(size);
        System.realloc(pointer, layout, size)
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        System.dealloc(pointer, layout)
    }
}

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
            "allocated" => allocated(&payloads, options),
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
    let began = Instant::now();
    let (count, sum) = parse(payloads, options);
    println!("{} {count} {sum}", began.elapsed().as_nanos());
}

fn allocated(payloads: &[&[u8]], options: Options) {
    let before = Counting::counts();
    parse(payloads, options);
    let after = Counting::counts();
    println!("{} {}", after.0 - before.0, after.1 - before.1);
}

fn parse(payloads: &[&[u8]], options: Options) -> (usize, usize) {
    let mut session = Session::new(options).expect("options");
    let (mut count, mut sum) = (0, 0);
    for payload in payloads {
        let message = session.parse(payload).expect("a message");
        count += 1;
        sum += message.index();
        black_box(message);
    }
    (count, sum)
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
