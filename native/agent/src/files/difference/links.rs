//! Files with several names: the first name of each, until all of them were met.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::limits::LINK_NAMES_BYTES_MAX;

#[derive(Default)]
pub struct Links {
    first: BTreeMap<(u64, u64), (Vec<u8>, u64)>,
    bytes: usize,
}

impl Links {
    /// The name to link to; `None` where this is the first one, or there are too many to remember.
    pub fn meet(&mut self, identity: (u64, u64), links: u64, name: &[u8]) -> Option<Vec<u8>> {
        if let Some((first, left)) = self.first.get_mut(&identity) {
            let first_name = first.clone();
            *left -= 1;
            if *left == 0 {
                self.bytes -= first_name.len();
                self.first.remove(&identity);
            }
            return Some(first_name);
        }
        if links > 1 && self.bytes + name.len() <= LINK_NAMES_BYTES_MAX {
            self.bytes += name.len();
            self.first.insert(identity, (name.to_vec(), links - 1));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_forgotten_when_all_were_met() {
        let mut links = Links::default();
        assert_eq!(links.meet((1, 1), 3, b"a"), None);
        assert_eq!(links.meet((1, 1), 3, b"b").unwrap(), b"a");
        assert_eq!(links.meet((1, 1), 3, b"c").unwrap(), b"a");
        assert_eq!((links.first.len(), links.bytes), (0, 0));
    }

    #[test]
    fn what_cannot_be_remembered_is_a_file_of_its_own() {
        let mut links = Links { bytes: LINK_NAMES_BYTES_MAX, ..Links::default() };
        assert_eq!(links.meet((1, 1), 2, b"a"), None);
        assert_eq!(links.meet((1, 1), 2, b"b"), None);
    }
}
