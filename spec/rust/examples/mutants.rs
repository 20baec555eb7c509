//! Reads changed messages, a million or as many as the first argument says: whatever is read is built again byte for
//! byte, and nothing panics. The second argument is the seed.

use pgoutput_codec::{connection, pgoutput, replication};

const SEEDS: &[&[u8]] = &[
    b"I\0\0\x40\x01N\0\x03t\0\0\0\x015nb\0\0\0\x04\0\0\0\x01",
    b"U\0\0\x40\x01K\0\x01t\0\0\0\x015N\0\x02t\0\0\0\x016u",
    b"R\0\0\x40\x01public\0t\0d\0\x02\x01id\0\0\0\0\x17\xff\xff\xff\xff\0v\0\0\0\0\x19\xff\xff\xff\xff",
    b"A\0\0\x02\xbc\0\0\x02\xbd\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x20",
    b"p\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\x30\0\0\x02\xbcgid\0",
    b"I\0\0\x02\xbc\0\0\x40\x01N\0\x02t\0\0\0\x015n",
    b"w\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\x30payload",
    b"r\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\x20\0\0\0\0\0\0\0\x30\x01",
    b"E\0\0\0\x1dSERROR\0C42601\0Mno\0Pwhat\0\0",
    b"Q\0\0\0\x0dSELECT 1\0",
    b"\0\0\0\x11\0\x03\0\0user\0me\0\0",
];

fn main() {
    let number = |at: usize, default: u64| {
        std::env::args()
            .nth(at)
            .and_then(|each| each.parse().ok())
            .unwrap_or(default)
    };
    let (count, mut state) = (number(1, 1_000_000), number(2, 1));
    let mut next = move |below: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % below.max(1)
    };
    let mut accepted = 0_u64;
    for _ in 0..count {
        let mut data = SEEDS[next(SEEDS.len())].to_vec();
        for _ in 0..next(4) {
            change(&mut data, &mut next);
        }
        accepted += u64::from(read(&data, &mut next));
    }
    println!("{count} messages: {accepted} readings, each built again");
}

/// Change a byte, cut the end off, or insert some bytes.
fn change(data: &mut Vec<u8>, next: &mut impl FnMut(usize) -> usize) {
    let at = next(data.len());
    match next(4) {
        0 => data.truncate(at),
        1 => data.insert(at, next(256) as u8),
        2 if !data.is_empty() => data[at] = [0, 1, 0x7f, 0x80, 0xff][next(5)],
        _ if !data.is_empty() => data[at] ^= 1 << next(8),
        _ => {}
    }
}

/// Read bytes as a message of some layout, as a frame, and as a message of a connection in some state; return as how
/// many they can be read.
fn read(data: &[u8], next: &mut impl FnMut(usize) -> usize) -> u8 {
    let mut options = pgoutput::Options::new(1 + next(4) as u32);
    options.streaming = [
        pgoutput::Streaming::Off,
        pgoutput::Streaming::On,
        pgoutput::Streaming::Parallel,
    ][next(3)];
    let sets = next(1 << pgoutput::STATE_PARAMETERS.len()) as u64;
    let (layout, mut found) = (options.layout(sets), 0);
    if let Ok(message) = pgoutput::parse(data, &layout) {
        assert_eq!(pgoutput::build(&message, &layout).as_deref(), Ok(data));
        found += 1;
    }
    if let Ok(frame) = replication::parse(data, &replication::Layout) {
        assert_eq!(
            replication::build(&frame, &replication::Layout).as_deref(),
            Ok(data)
        );
        found += 1;
    }
    let (state, _) = connection::State::ALL[next(connection::State::ALL.len())];
    let sender = [connection::Sender::Server, connection::Sender::Client][next(2)];
    if let Ok(message) = connection::parse(data, sender, state) {
        assert_eq!(connection::build(&message).as_deref(), Ok(data));
        found += 1;
    }
    found
}
