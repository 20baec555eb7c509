//! What the generated modules use.

pub use crate::errors::*;
pub use crate::json::{Json, ToJson};
pub use crate::reader::Reader;
pub use crate::states::StreamState;
pub use crate::values::*;
pub use crate::writer::*;
