//! MessagePack, as far as control payloads need it: values of a request, and maps written back.

mod read;
mod write;

pub use read::{Fields, parse_map};
pub use write::{Map, bytes, map};
