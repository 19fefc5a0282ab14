//! What is kept of one output channel: the first bytes (mode `buffered`) and the newest ones.
//!
//! ```
//! 0 ─── head ───┤  dropped  ├─── ring ─── total
//! ```

use alloc::vec::Vec;

use crate::limits::{RING_BYTES_MIN, RINGS_TOTAL_BYTES};

/// Bytes that all channels of the sandbox hold together.
#[derive(Debug, Default)]
pub struct Budget {
    used: usize,
}

impl Budget {
    pub fn used(&self) -> usize {
        self.used
    }

    /// Whether `bytes` more may be held; the first few of each channel always may.
    fn take(&mut self, bytes: usize, held: usize) -> bool {
        let granted = held + bytes <= RING_BYTES_MIN || self.used + bytes <= RINGS_TOTAL_BYTES;
        if granted {
            self.used += bytes;
        }
        granted
    }
}

#[derive(Debug, Default)]
pub struct Kept {
    head: Vec<u8>,
    head_max: usize,
    ring: Vec<u8>,
    ring_max: usize,
    /// Index of the oldest byte, and how many there are.
    start: usize,
    length: usize,
    total: u64,
    /// Where the first reader has not been yet: what is overwritten below was seen.
    seen: u64,
    lost: u64,
}

/// Where a reader's position leads.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    Bytes(&'a [u8]),
    /// Bytes up to this offset are no longer kept.
    Gap(u64),
    Nothing,
}

impl Kept {
    pub fn new(head_max: usize, ring_max: usize) -> Kept {
        Kept { head_max, ring_max: ring_max.max(1), ..Kept::default() }
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that no reader was given and none can be.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// How many more bytes fit without overwriting what lies at `unread` or behind.
    pub fn room(&self, unread: u64) -> usize {
        self.ring_max.saturating_sub((self.total - unread.clamp(self.base(), self.total)) as usize)
    }

    pub fn push(&mut self, mut bytes: &[u8], budget: &mut Budget) {
        let into_head = self.head_room(bytes.len(), budget);
        self.head.extend_from_slice(&bytes[..into_head]);
        self.total += into_head as u64;
        bytes = &bytes[into_head..];
        if bytes.is_empty() {
            return;
        }
        self.grow(self.length + bytes.len(), budget);
        let capacity = self.ring.len();
        let overflow = (self.length + bytes.len()).saturating_sub(capacity);
        self.forget_oldest(overflow.min(self.length));
        let skipped = bytes.len().saturating_sub(capacity);
        self.count_lost(self.total, skipped);
        self.total += skipped as u64;
        self.append(&bytes[skipped..]);
    }

    /// What a reader at `position` gets next.
    pub fn next(&self, position: u64) -> Next<'_> {
        if let Some(rest) = self.head.get(position as usize..).filter(|rest| !rest.is_empty()) {
            return Next::Bytes(rest);
        }
        if position < self.base() {
            return Next::Gap(self.base());
        }
        let skip = (position - self.base()) as usize;
        if skip >= self.length {
            return Next::Nothing;
        }
        let from = (self.start + skip) % self.ring.len();
        let until = self.ring.len().min(from + self.length - skip);
        Next::Bytes(&self.ring[from..until])
    }

    /// A reader was given everything below `position`.
    pub fn mark_seen(&mut self, position: u64) {
        self.seen = self.seen.max(position);
    }

    /// Drops all that is held.
    pub fn release(&mut self, budget: &mut Budget) {
        budget.used -= self.head.capacity() + self.ring.len();
        self.head = Vec::new();
        self.ring = Vec::new();
        (self.start, self.length) = (0, 0);
    }

    /// Offset of the ring's oldest byte.
    fn base(&self) -> u64 {
        self.total - self.length as u64
    }

    fn head_room(&mut self, wanted: usize, budget: &mut Budget) -> usize {
        let contiguous = self.total == self.head.len() as u64;
        let room = if contiguous { self.head_max.saturating_sub(self.head.len()) } else { 0 };
        let wanted = wanted.min(room);
        let held = self.head.capacity();
        let needed = self.head.len() + wanted;
        if needed > held {
            let grown = needed.next_power_of_two().max(4096).min(self.head_max);
            if !budget.take(grown - held, held) {
                self.head_max = held;
                return wanted.min(held - self.head.len());
            }
            self.head.reserve_exact(grown - self.head.len());
            budget.used += self.head.capacity() - grown;
        }
        wanted
    }

    fn grow(&mut self, needed: usize, budget: &mut Budget) {
        let held = self.ring.len();
        if needed <= held || held == self.ring_max {
            return;
        }
        let largest = needed.next_power_of_two().max(4096).min(self.ring_max);
        let least = RING_BYTES_MIN.min(self.ring_max).max(held);
        let sizes = [largest, least].into_iter().filter(|size| *size > held);
        let Some(size) = sizes.into_iter().find(|size| budget.take(*size - held, held)) else {
            return;
        };
        let mut grown = alloc::vec![0; size];
        let first = self.length.min(held - self.start);
        grown[..first].copy_from_slice(&self.ring[self.start..self.start + first]);
        grown[first..self.length].copy_from_slice(&self.ring[..self.length - first]);
        (self.ring, self.start) = (grown, 0);
    }

    fn forget_oldest(&mut self, count: usize) {
        self.count_lost(self.base(), count);
        if count > 0 {
            self.start = (self.start + count) % self.ring.len();
            self.length -= count;
        }
    }

    fn count_lost(&mut self, from: u64, count: usize) {
        let until = from + count as u64;
        self.lost += until - from.clamp(self.seen.min(until), until);
    }

    fn append(&mut self, bytes: &[u8]) {
        let at = (self.start + self.length) % self.ring.len();
        let first = bytes.len().min(self.ring.len() - at);
        self.ring[at..at + first].copy_from_slice(&bytes[..first]);
        self.ring[..bytes.len() - first].copy_from_slice(&bytes[first..]);
        self.length += bytes.len();
        self.total += bytes.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn byte(offset: u64) -> u8 {
        (offset * 31 % 251) as u8
    }

    /// Reads all from `position` and checks each byte; gives how many and what was skipped.
    fn read(kept: &Kept, mut position: u64) -> (u64, u64) {
        let (mut bytes, mut skipped) = (0, 0);
        loop {
            match kept.next(position) {
                Next::Bytes(slice) => {
                    for (at, value) in slice.iter().enumerate() {
                        assert_eq!(*value, byte(position + at as u64));
                    }
                    position += slice.len() as u64;
                    bytes += slice.len() as u64;
                }
                Next::Gap(to) => {
                    assert!(to > position);
                    skipped += to - position;
                    position = to;
                }
                Next::Nothing => return (bytes, skipped),
            }
        }
    }

    fn push(kept: &mut Kept, budget: &mut Budget, count: usize) {
        let from = kept.total();
        let bytes: Vec<u8> = (from..from + count as u64).map(byte).collect();
        kept.push(&bytes, budget);
    }

    #[test]
    fn head_and_tail() {
        for piece in [1, 7, 100, 5000] {
            let (mut kept, mut budget) = (Kept::new(1000, 500), Budget::default());
            for _ in 0..10_000 / piece {
                push(&mut kept, &mut budget, piece);
            }
            let total = kept.total();
            assert_eq!(read(&kept, 0), (1500, total - 1500), "{piece}");
            assert_eq!(kept.lost(), total - 1500);
            kept.release(&mut budget);
            assert_eq!(budget.used(), 0);
        }
    }

    #[test]
    fn all_is_kept_while_it_fits() {
        let (mut kept, mut budget) = (Kept::new(1000, 500), Budget::default());
        push(&mut kept, &mut budget, 1500);
        assert_eq!(read(&kept, 0), (1500, 0));
        assert_eq!(read(&kept, 999), (501, 0));
        assert_eq!(read(&kept, 1500), (0, 0));
        assert_eq!(kept.lost(), 0);
    }

    #[test]
    fn what_was_seen_is_not_lost() {
        let (mut kept, mut budget) = (Kept::new(0, 100), Budget::default());
        push(&mut kept, &mut budget, 100);
        assert_eq!(kept.room(0), 0);
        assert_eq!(kept.room(60), 60);
        kept.mark_seen(60);
        push(&mut kept, &mut budget, 80);
        assert_eq!(kept.lost(), 20);
        assert_eq!(read(&kept, 60), (100, 20));
        push(&mut kept, &mut budget, 1000);
        assert_eq!(kept.lost(), 20 + 1000);
        assert_eq!(read(&kept, 180).0, 100);
    }

    #[test]
    fn a_spent_budget_leaves_small_rings() {
        let mut budget = Budget::default();
        let mut all: Vec<Kept> = (0..40).map(|_| Kept::new(512 << 10, 512 << 10)).collect();
        for kept in &mut all {
            for _ in 0..40 {
                push(kept, &mut budget, 65_536);
            }
            let (bytes, skipped) = read(kept, 0);
            assert_eq!(bytes + skipped, 40 * 65_536);
            assert!(bytes >= RING_BYTES_MIN as u64);
        }
        assert!(budget.used() <= RINGS_TOTAL_BYTES + 40 * 2 * RING_BYTES_MIN, "{}", budget.used());
        all.iter_mut().for_each(|kept| kept.release(&mut budget));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn random_pushes_and_reads() {
        let mut state = 7u64;
        let mut random = move |limit: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % limit.max(1)
        };
        for _ in 0..300 {
            let mut budget = Budget::default();
            let mut kept = Kept::new(random(3000) as usize, random(3000) as usize);
            for _ in 0..random(60) {
                push(&mut kept, &mut budget, random(4000) as usize);
                let position = random(kept.total() + 1);
                let (bytes, skipped) = read(&kept, position);
                assert_eq!(bytes + skipped, kept.total() - position);
            }
            assert_eq!(kept.lost(), kept.total() - read(&kept, 0).0);
        }
    }
}
