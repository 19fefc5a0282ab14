//! Where a file holds something else than zeros. The runtime tells of no holes, so its bytes are looked at.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::files::tar::BLOCK_BYTES;
use crate::sys::fd::Fd;

const BLOCK: usize = 4096;
/// Files below this are not worth a second look.
pub const LOOKED_AT_BYTES: u64 = 1 << 20;
/// A hole is at least so long, and at least this part of its file: so the map stays short.
const HOLE_BYTES_MIN: u64 = 64 << 10;
const HOLE_PART_MIN: u64 = 4096;

/// Offset and length of each stretch of data.
pub struct DataMap(Vec<(u64, u64)>);

impl DataMap {
    /// `None` where there is no hole worth telling, and for a file that can't be read or ends early.
    pub fn of(file: &Fd, size: u64) -> Option<DataMap> {
        let mut data = DataFinder::new(size);
        let mut buffer = vec![0; 256 << 10];
        while data.at < size {
            let most = buffer.len().min((size - data.at) as usize);
            match file.read(&mut buffer[..most]) {
                Ok(count) if count > 0 => data.look(&buffer[..count]),
                _ => return None,
            }
        }
        data.finish()
    }

    pub fn regions(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// As GNU tar's sparse format 1.0 has it: at the start of the content, in whole blocks.
    pub fn text(&self) -> Vec<u8> {
        let mut text = String::from(&format!("{}\n", self.0.len()));
        for (offset, length) in &self.0 {
            text += &format!("{offset}\n{length}\n");
        }
        let mut bytes = text.into_bytes();
        bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
        bytes
    }

    pub fn data_bytes(&self) -> u64 {
        self.0.iter().map(|(_, length)| length).sum()
    }
}

struct DataFinder {
    size: u64,
    hole_min: u64,
    at: u64,
    regions: Vec<(u64, u64)>,
    data_from: u64,
    /// Where the zeros began that it stands in.
    zeros_from: Option<u64>,
}

impl DataFinder {
    fn new(size: u64) -> DataFinder {
        let hole_min = HOLE_BYTES_MIN.max(size / HOLE_PART_MIN);
        let regions = Vec::new();
        DataFinder { size, hole_min, at: 0, regions, data_from: 0, zeros_from: None }
    }

    fn look(&mut self, bytes: &[u8]) {
        for block in bytes.chunks(BLOCK) {
            match (is_zero(block), self.zeros_from) {
                (true, None) => self.zeros_from = Some(self.at),
                (false, Some(_)) => self.end_zeros(),
                _ => {}
            }
            self.at += block.len() as u64;
        }
    }

    fn end_zeros(&mut self) {
        if let Some(from) = self.zeros_from.take()
            && self.at - from >= self.hole_min
        {
            if from > self.data_from {
                self.regions.push((self.data_from, from - self.data_from));
            }
            self.data_from = self.at;
        }
    }

    fn finish(mut self) -> Option<DataMap> {
        self.end_zeros();
        if self.size > self.data_from {
            self.regions.push((self.data_from, self.size - self.data_from));
        }
        let map = DataMap(self.regions);
        (map.data_bytes() < self.size).then_some(map)
    }
}

fn is_zero(block: &[u8]) -> bool {
    // Most data shows itself in its first bytes.
    block[..block.len().min(16)].iter().all(|byte| *byte == 0)
        && block.iter().fold(0, |all, byte| all | byte) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(bytes: &[u8], piece: usize) -> Option<Vec<(u64, u64)>> {
        let mut finder = DataFinder::new(bytes.len() as u64);
        bytes.chunks(piece).for_each(|bytes| finder.look(bytes));
        finder.finish().map(|map| map.0)
    }

    #[test]
    fn holes_are_found() {
        let kib = |count: usize| count << 10;
        let mut bytes = vec![1; kib(512)];
        assert_eq!(regions(&bytes, kib(256)), None);
        // Too short to be told.
        bytes[kib(8)..kib(64)].fill(0);
        assert_eq!(regions(&bytes, kib(256)), None);
        bytes[kib(128)..kib(256)].fill(0);
        let found = [(0, kib(128) as u64), (kib(256) as u64, kib(256) as u64)];
        assert_eq!(regions(&bytes, kib(256)).unwrap(), found);
        assert_eq!(regions(&bytes, kib(4)).unwrap(), found);
        bytes[kib(256)..].fill(0);
        assert_eq!(regions(&bytes, kib(256)).unwrap(), [(0, kib(128) as u64)]);
        bytes.fill(0);
        assert_eq!(regions(&bytes, kib(256)).unwrap(), []);
        bytes[kib(512) - 1] = 1;
        assert_eq!(regions(&bytes, kib(256)).unwrap(), [(kib(508) as u64, kib(4) as u64)]);
    }

    #[test]
    fn the_map_fills_whole_blocks() {
        let map = DataMap([(0, 4096), (1 << 20, 5)].into());
        assert_eq!(&map.text()[..22], b"2\n0\n4096\n1048576\n5\n\0\0\0");
        assert_eq!((map.text().len(), map.data_bytes()), (512, 4101));
    }
}
