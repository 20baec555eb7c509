//! Messages as JSON: the format of `pgoutput decode`, and of the golden vectors.

use alloc::{string::String, vec::Vec};
use core::fmt::Write;

use crate::values::{Float, Letter, Lsn, Text, Timestamp};

/// A JSON text that is being written, with the parameters of the layouts of what is in it.
pub struct Json<'l, L> {
    out: String,
    pub layout: &'l L,
}

/// What can be written as JSON.
pub trait ToJson<L> {
    fn json(&self, json: &mut Json<'_, L>);
}

impl<'l, L> Json<'l, L> {
    pub fn new(layout: &'l L) -> Self {
        Self {
            out: String::new(),
            layout,
        }
    }

    pub fn finish(self) -> String {
        self.out
    }

    pub fn message(&mut self, name: &str, message: &impl ToJson<L>) {
        self.out.push_str("{\"message\":");
        self.text(name);
        let start = self.out.len();
        message.json(self);
        let comma = if self.out[start..].starts_with("{}") {
            ""
        } else {
            ","
        };
        self.out.replace_range(start..start + 1, comma);
    }

    pub fn open(&mut self, bracket: char) {
        self.out.push(bracket);
    }

    pub fn close(&mut self, bracket: char) {
        if self.out.ends_with(',') {
            self.out.pop();
        }
        self.out.push(bracket);
    }

    pub fn field(&mut self, name: &str, value: &impl ToJson<L>) {
        self.text(name);
        self.out.push(':');
        value.json(self);
        self.out.push(',');
    }

    pub fn null(&mut self) {
        self.out.push_str("null");
    }

    /// Write an object with one key.
    pub fn object(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.out.push('{');
        self.text(name);
        self.out.push(':');
        inside(self);
        self.out.push('}');
    }

    pub fn marker(&mut self, name: &str) {
        self.object(name, |json| json.out.push_str("true"));
    }

    pub fn hex(&mut self, name: &str, data: &[u8]) {
        self.open('{');
        self.digits(name, data);
        self.close('}');
    }

    /// Write a field with the digits of bytes.
    pub fn digits(&mut self, name: &str, data: &[u8]) {
        self.text(name);
        self.out.push_str(":\"");
        for byte in data {
            let _ = write!(self.out, "{byte:02x}");
        }
        self.out.push_str("\",");
    }

    pub fn text_or_hex(&mut self, name: &str, data: &[u8]) {
        match core::str::from_utf8(data) {
            Ok(text) => self.text(text),
            Err(_) => self.hex(name, data),
        }
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for each in text.chars() {
            match each {
                '"' | '\\' => self.out.extend(['\\', each]),
                '\u{0}'..='\u{1f}' => {
                    let _ = write!(self.out, "\\u{:04x}", u32::from(each));
                }
                _ => self.out.push(each),
            }
        }
        self.out.push('"');
    }
}

macro_rules! printed {
    ($($kind:ty: $form:literal;)*) => {$(
        impl<L> ToJson<L> for $kind {
            fn json(&self, json: &mut Json<'_, L>) {
                let _ = write!(json.out, $form, self);
            }
        }
    )*};
}

printed! {
    u8: "{}";
    u16: "{}";
    u32: "{}";
    u64: "{}";
    i8: "{}";
    i16: "{}";
    i32: "{}";
    i64: "{}";
    Lsn: "\"{}\"";
    Timestamp: "\"{}\"";
}

impl<L> ToJson<L> for Float {
    fn json(&self, json: &mut Json<'_, L>) {
        const QUIET_NAN: u64 = 0x7ff8 << 48;
        match self.0 {
            value if value.is_finite() => {
                let _ = write!(json.out, "{value:?}");
            }
            value if value.is_infinite() => {
                json.text(if value > 0.0 { "Infinity" } else { "-Infinity" });
            }
            value if value.to_bits() == QUIET_NAN => json.text("NaN"),
            value => json.hex("hex", &value.to_be_bytes()),
        }
    }
}

impl<L> ToJson<L> for Letter {
    fn json(&self, json: &mut Json<'_, L>) {
        json.text(char::from(self.0).encode_utf8(&mut [0; 4]));
    }
}

impl<L> ToJson<L> for Text<'_> {
    fn json(&self, json: &mut Json<'_, L>) {
        json.text_or_hex("hex", self.0);
    }
}

impl<L> ToJson<L> for &[u8] {
    fn json(&self, json: &mut Json<'_, L>) {
        json.hex("hex", self);
    }
}

impl<L, const SIZE: usize> ToJson<L> for [u8; SIZE] {
    fn json(&self, json: &mut Json<'_, L>) {
        json.hex("hex", self);
    }
}

impl<L, T: ToJson<L>> ToJson<L> for Option<T> {
    fn json(&self, json: &mut Json<'_, L>) {
        match self {
            Some(value) => value.json(json),
            None => json.null(),
        }
    }
}

impl<L, T: ToJson<L>> ToJson<L> for Vec<T> {
    fn json(&self, json: &mut Json<'_, L>) {
        json.open('[');
        for each in self {
            each.json(json);
            json.out.push(',');
        }
        json.close(']');
    }
}
