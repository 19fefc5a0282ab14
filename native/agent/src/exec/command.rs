//! A command line as it is shown to people, who want to know which of many a command was.

use alloc::vec::Vec;

use crate::limits::COMMAND_KEPT_BYTES;

pub struct Shown {
    /// The arguments, a NUL between two.
    text: Vec<u8>,
    cut: bool,
}

impl Shown {
    pub fn of(argv: &[&[u8]]) -> Shown {
        let mut text = Vec::new();
        for argument in argv {
            if !text.is_empty() {
                text.push(0);
            }
            text.extend_from_slice(&argument[..argument.len().min(COMMAND_KEPT_BYTES)]);
            if text.len() > COMMAND_KEPT_BYTES {
                text.truncate(COMMAND_KEPT_BYTES);
                return Shown { text, cut: true };
            }
        }
        let cut = argv.iter().any(|argument| argument.len() > COMMAND_KEPT_BYTES);
        Shown { text, cut }
    }

    /// At most so many bytes of it, and whether there is more.
    pub fn first(&self, bytes: usize) -> (&[u8], bool) {
        (&self.text[..self.text.len().min(bytes)], self.cut || self.text.len() > bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_and_cut() {
        let short = Shown::of(&[b"sh", b"-c", b"echo a"]);
        assert_eq!(short.first(100), (&b"sh\0-c\0echo a"[..], false));
        assert_eq!(short.first(4), (&b"sh\0-"[..], true));
        let long = [b'x'; 2 * COMMAND_KEPT_BYTES];
        for argv in [&[&long[..]][..], &[b"a", &long], &[&long, b"a"]] {
            let shown = Shown::of(argv);
            assert_eq!((shown.first(usize::MAX).0.len(), shown.cut), (COMMAND_KEPT_BYTES, true));
        }
        let exact = Shown::of(&[&long[..COMMAND_KEPT_BYTES]]);
        assert!(!exact.first(COMMAND_KEPT_BYTES).1);
    }
}
