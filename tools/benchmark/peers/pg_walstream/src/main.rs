//! Parses a file of payloads with pg_walstream. See tools/benchmark/harness.py for what is said on stdin and stdout.

use bytes::Bytes;
use pg_walstream::protocol::{
    LogicalReplicationMessage as Message, LogicalReplicationParser, StreamingReplicationMessage, TupleData,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::BufRead;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

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

#[derive(Default)]
struct Tally {
    messages: usize,
    kinds: BTreeMap<char, usize>,
    values: usize,
    bytes: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let payloads = read(&arguments[1]);
    let version: u32 = arguments[2].parse().expect("a protocol version");
    println!("ready {}", payloads.len());
    for line in std::io::stdin().lock().lines() {
        match line.expect("a line").as_str() {
            "tally" => tally(&payloads, version),
            "pass" => pass(&payloads, version),
            "allocated" => allocated(&payloads, version),
            _ => {}
        }
    }
}

fn read(path: &str) -> Vec<Bytes> {
    let mut data = Bytes::from(std::fs::read(path).expect("a file of payloads"));
    let mut payloads = Vec::new();
    while !data.is_empty() {
        let length = u32::from_be_bytes(data[..4].try_into().expect("four bytes")) as usize;
        payloads.push(data.slice(4..4 + length));
        data = data.slice(4 + length..);
    }
    payloads
}

fn visit(payloads: &[Bytes], version: u32, mut consume: impl FnMut(u8, StreamingReplicationMessage)) {
    let mut parser = LogicalReplicationParser::with_protocol_version(version);
    for payload in payloads {
        // The handle is cloned, not the bytes: it is the parser's own way without a copy.
        let message = parser.parse_wal_message_bytes(payload.clone()).expect("a message");
        consume(payload[0], message);
    }
}

fn pass(payloads: &[Bytes], version: u32) {
    let (mut count, mut sum) = (0usize, 0usize);
    let began = Instant::now();
    visit(payloads, version, |_, message| {
        count += 1;
        sum += usize::from(message.is_streaming);
        black_box(message);
    });
    println!("{} {count} {sum}", began.elapsed().as_nanos());
}

fn allocated(payloads: &[Bytes], version: u32) {
    let before = Counting::counts();
    visit(payloads, version, |_, message| {
        black_box(message);
    });
    let after = Counting::counts();
    println!("{} {}", after.0 - before.0, after.1 - before.1);
}

fn tally(payloads: &[Bytes], version: u32) {
    let mut tally = Tally::default();
    visit(payloads, version, |kind, message| {
        tally.messages += 1;
        *tally.kinds.entry(kind as char).or_default() += 1;
        match message.message {
            Message::Insert { tuple, .. } => tally.tuple(&tuple),
            Message::Update { old_tuple, new_tuple, .. } => {
                old_tuple.iter().for_each(|old| tally.tuple(old));
                tally.tuple(&new_tuple);
            }
            Message::Delete { old_tuple, .. } => tally.tuple(&old_tuple),
            _ => {}
        }
    });
    let kinds: Vec<String> = tally.kinds.iter().map(|(kind, count)| format!("\"{kind}\": {count}")).collect();
    println!(
        "{{\"messages\": {}, \"kinds\": {{{}}}, \"values\": {}, \"bytes\": {}}}",
        tally.messages,
        kinds.join(", "),
        tally.values,
        tally.bytes
    );
}

impl Tally {
    fn tuple(&mut self, tuple: &TupleData) {
        self.values += tuple.column_count();
        self.bytes += (0..tuple.column_count())
            .filter_map(|index| tuple.get_column(index))
            .map(|column| column.as_bytes().len())
            .sum::<usize>();
    }
}
