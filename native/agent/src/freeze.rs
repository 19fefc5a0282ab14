//! Standing still while the sandbox is saved, and going on: here, or as somebody else in a copy.
//!
//! ```
//! live ── freeze ──▶ frozen ── thaw ──▶ live
//! ```
//! - **frozen**: no time of ours runs out, no byte goes to the daemon, and nothing but `thaw` is asked. A copy wakes in this
//!   state, hours later by its clock, and stays in it until its daemon says who it is.

use alloc::vec::Vec;

use crate::agent::Agent;
use crate::clock::now_ms;
use crate::failure::{Code, Failure, Outcome};
use crate::keeper::message::Tag;
use crate::pack::{self, Fields};
use crate::streams::Stream;

impl Agent {
    pub fn request_freeze(&mut self, id: u32) -> Outcome<()> {
        if self.worlds.iter().any(|world| world.in_transition()) {
            return Err(Failure::new(Code::Busy, "a world is being made or ended"));
        }
        self.frozen_since_ms.get_or_insert(now_ms());
        self.succeed(id, pack::map());
        Ok(())
    }

    /// Goes on with what time was left to everything. With `sandbox` it is another one from now on, and so are its worlds.
    pub fn request_thaw(&mut self, id: u32, fields: &Fields<'_>, payload: &[u8]) -> Outcome<()> {
        let renamed = fields.optional_bytes("sandbox")?.is_some();
        if renamed {
            fields.bytes("hostname")?;
            // Whether it has a way out is told to one that is somebody.
            if !fields.bytes("sandbox")?.is_empty() {
                self.relay_of_copy(fields)?;
            }
            self.identity.configure(fields)?;
            self.identity.draw_boot();
        }
        if let Some(since_ms) = self.frozen_since_ms.take() {
            self.make_up_for(now_ms().saturating_sub(since_ms), !renamed);
        }
        let asked = if renamed { self.rename_worlds(id, payload) } else { 0 };
        match asked {
            0 => self.succeed(id, pack::map()),
            left => self.streams.add(id, Stream::Renaming { left }),
        }
        Ok(())
    }

    pub fn frozen(&self) -> bool {
        self.frozen_since_ms.is_some()
    }

    fn make_up_for(&mut self, lost_ms: u64, lifetime: bool) {
        self.execs.make_up_for(lost_ms);
        self.streams.make_up_for(lost_ms);
        self.identity.make_up_for(lost_ms, lifetime);
    }

    /// Gives how many worlds have to answer.
    fn rename_worlds(&mut self, id: u32, payload: &[u8]) -> usize {
        let open = (0..self.worlds.len()).filter(|world| self.worlds[*world].is_open());
        let open: Vec<usize> = open.collect();
        for world in &open {
            let serial = self.next_serial();
            self.waiting.insert(serial, id);
            self.say_to_keeper(*world, Tag::Rename, serial, &[], payload, Vec::new());
        }
        open.len()
    }
}
