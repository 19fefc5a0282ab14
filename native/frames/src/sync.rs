use alloc::vec::Vec;

use crate::frame::{END, Kind, header};
use crate::limits::{HEADER_BYTES, SYNC_BYTES};

pub const SYNC_MAGIC: [u8; 16] = *b"sandlot-sync-v1\n";

pub type Nonce = [u8; 16];

/// What a hunting side waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prey {
    /// Any sync: the agent's side.
    Sync,
    /// The acknowledgement of one's own nonce: the daemon's side.
    SyncAck(Nonce),
}

pub fn sync_payload(nonce: &Nonce) -> [u8; SYNC_BYTES] {
    let mut payload = [0; SYNC_BYTES];
    payload[..16].copy_from_slice(&SYNC_MAGIC);
    payload[16..].copy_from_slice(nonce);
    payload
}

/// Where in `bytes` the prey may begin: everything before is to be dropped.
/// `Some((at, true))`: it lies there whole. `(at, false)`: it may begin there, more is needed.
pub(crate) fn find(prey: &Prey, bytes: &[u8]) -> (usize, bool) {
    let pattern = pattern(prey);
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let known = rest.len().min(pattern.len());
        if rest[..known] == pattern[..known] {
            let whole = HEADER_BYTES + SYNC_BYTES + 1;
            if rest.len() < whole {
                return (at, false);
            }
            if rest[whole - 1] == END {
                return (at, true);
            }
        }
        at += 1;
    }
    (bytes.len(), false)
}

fn pattern(prey: &Prey) -> Vec<u8> {
    let (kind, nonce): (Kind, &[u8]) = match prey {
        Prey::Sync => (Kind::Sync, &[]),
        Prey::SyncAck(nonce) => (Kind::SyncAck, nonce),
    };
    let mut pattern = header(kind, 0, 0, SYNC_BYTES).to_vec();
    pattern.extend_from_slice(&SYNC_MAGIC);
    pattern.extend_from_slice(nonce);
    pattern
}
