use crate::limits::WINDOW_BYTES;

/// The peer sent more than it had credit for; the frame is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrun;

/// How much this side may still send on one channel.
#[derive(Clone, Debug)]
pub struct SendWindow {
    left: u32,
}

impl Default for SendWindow {
    fn default() -> Self {
        SendWindow { left: WINDOW_BYTES }
    }
}

impl SendWindow {
    pub fn left(&self) -> usize {
        self.left as usize
    }

    /// Spends up to `wanted` bytes and says how many.
    pub fn take(&mut self, wanted: usize) -> usize {
        let taken = wanted.min(self.left as usize);
        self.left -= taken as u32;
        taken
    }

    pub fn grant(&mut self, bytes: u32) {
        self.left = self.left.saturating_add(bytes);
    }
}

/// How much the peer may still send on one channel, and what it hasn't been told yet.
#[derive(Clone, Debug)]
pub struct ReceiveWindow {
    size: u32,
    left: u32,
    consumed: u32,
}

impl Default for ReceiveWindow {
    fn default() -> Self {
        ReceiveWindow { size: WINDOW_BYTES, left: WINDOW_BYTES, consumed: 0 }
    }
}

impl ReceiveWindow {
    pub fn receive(&mut self, bytes: usize) -> Result<(), Overrun> {
        let bytes = u32::try_from(bytes).map_err(|_| Overrun)?;
        self.left = self.left.checked_sub(bytes).ok_or(Overrun)?;
        Ok(())
    }

    /// Lets more be under way from now on. Gives the grant to send.
    pub fn widen(&mut self, size: u32) -> u32 {
        let grant = size.saturating_sub(self.size);
        self.size += grant;
        self.left += grant;
        grant
    }

    /// Counts bytes that left the buffer. Gives the grant to send when half the window is due,
    /// so that a busy channel costs few credit frames and never runs dry.
    pub fn consume(&mut self, bytes: usize) -> Option<u32> {
        self.consumed += (bytes as u32).min(self.size - self.left - self.consumed);
        if self.consumed < self.size / 2 {
            return None;
        }
        let grant = core::mem::take(&mut self.consumed);
        self.left += grant;
        Some(grant)
    }
}
