//! The numbers of the wire, big-endian.

use alloc::vec::Vec;

use crate::values::{Float, Lsn, Timestamp};

/// A number of the wire; of one in floating point these are the bits.
pub trait Number: Copy + PartialEq {
    const SIZE: usize;
    fn read(data: &[u8]) -> Self;
    fn write(self, data: &mut Vec<u8>);
    fn has_only(self, mask: u64) -> bool;
    fn from_size(size: i128) -> Option<Self>;
    fn size(self) -> i128;
}

macro_rules! numbers {
    ($($int:ty, $wrap:expr, $bare:expr, $name:ty;)*) => {$(
        impl Number for $name {
            const SIZE: usize = size_of::<$int>();

            fn read(data: &[u8]) -> Self {
                let mut bytes = [0; size_of::<$int>()];
                bytes.copy_from_slice(data);
                $wrap(<$int>::from_be_bytes(bytes))
            }

            fn write(self, data: &mut Vec<u8>) {
                data.extend_from_slice(&$bare(self).to_be_bytes());
            }

            fn has_only(self, mask: u64) -> bool {
                $bare(self) as u64 & !mask & (u64::MAX >> (64 - 8 * Self::SIZE)) == 0
            }

            fn from_size(size: i128) -> Option<Self> {
                <$int>::try_from(size).ok().map($wrap)
            }

            fn size(self) -> i128 {
                $bare(self) as i128
            }
        }
    )*};
}

fn same<T>(value: T) -> T {
    value
}

numbers! {
    u8, same, same, u8;
    u16, same, same, u16;
    u32, same, same, u32;
    u64, same, same, u64;
    i8, same, same, i8;
    i16, same, same, i16;
    i32, same, same, i32;
    i64, same, same, i64;
    u64, Lsn, |each: Lsn| each.0, Lsn;
    i64, Timestamp, |each: Timestamp| each.0, Timestamp;
    u64, |bits| Float(f64::from_bits(bits)), |each: Float| each.0.to_bits(), Float;
}
