pub const HEADER_BYTES: usize = 12;
pub const PAYLOAD_BYTES_MAX: usize = 65_536;
pub const FRAME_BYTES_MAX: usize = HEADER_BYTES + PAYLOAD_BYTES_MAX + 1;

/// Zero bytes that an attaching daemon writes ahead of its sync: as long as the longest frame,
/// so that whatever was left half written ends inside them.
pub const PADDING_BYTES: usize = FRAME_BYTES_MAX;

/// Payload of a sync and of its acknowledgement: magic and nonce.
pub const SYNC_BYTES: usize = 32;

/// Credit that each direction of each channel starts with.
pub const WINDOW_BYTES: u32 = 262_144;

/// What the decoder holds at most: one frame under way and one more read.
pub(crate) const BUFFER_BYTES: usize = 2 * FRAME_BYTES_MAX;

const _: () = assert!(WINDOW_BYTES as usize >= 2 * PAYLOAD_BYTES_MAX);
const _: () = assert!(SYNC_BYTES <= PAYLOAD_BYTES_MAX);
