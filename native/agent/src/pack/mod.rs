//! MessagePack, as far as control payloads need it: values of a request, and maps written back.

mod read;
mod write;

#[allow(unused_imports)]
pub use read::{Fields, Value, parse_map};
pub use write::{Map, bytes, map, text};
