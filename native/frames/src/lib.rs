//! The wire both sides of a guest channel speak: `docs/wire.md` is the contract,
//! `vectors.json` its golden bytes. No I/O and no dependency: callers bring the bytes.

#![no_std]

extern crate alloc;

mod credit;
mod decoder;
mod frame;
mod limits;
mod sync;

pub use credit::{Overrun, ReceiveWindow, SendWindow};
pub use decoder::{Decoder, Malformed};
pub use frame::{Frame, Kind, encode, header};
pub use limits::{
    FRAME_BYTES_MAX, HEADER_BYTES, PADDING_BYTES, PAYLOAD_BYTES_MAX, SYNC_BYTES, WINDOW_BYTES,
};
pub use sync::{Nonce, Prey, SYNC_MAGIC, sync_payload};
