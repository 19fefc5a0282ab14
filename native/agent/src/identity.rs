use alloc::vec::Vec;

use crate::agent::Agent;
use crate::clock::now_ms;
use crate::failure::{Failure, Outcome};
use crate::limits::{DETACHED_MS_DEFAULT, NAME_BYTES_MAX};
use crate::pack::{self, Fields, Map};
use crate::sys::process;

/// What it calls itself. The revision is that of `docs/wire.md`: who has the file finds it in there without running it.
const AGENT: &str = concat!("sandlot-agent ", env!("CARGO_PKG_VERSION"), " (revision 7)");

/// Who this agent is, and how long it lives.
pub struct Identity {
    /// Drawn once: another value is another agent.
    boot: [u8; 16],
    /// Empty while blank.
    sandbox: Vec<u8>,
    started_ms: u64,
    detached_ms: u64,
    lifetime_ends_ms: Option<u64>,
}

impl Identity {
    pub fn draw() -> Identity {
        let mut identity = Identity {
            boot: [0; 16],
            sandbox: Vec::new(),
            started_ms: now_ms(),
            detached_ms: DETACHED_MS_DEFAULT,
            lifetime_ends_ms: None,
        };
        identity.draw_boot();
        identity
    }

    pub fn draw_boot(&mut self) {
        process::random(&mut self.boot);
    }

    /// When the agent ends itself, as things stand. A frozen one does so only where nobody is there to thaw it.
    pub fn ends_at_ms(&self, detached_since_ms: Option<u64>, frozen: bool) -> Option<u64> {
        let detached = detached_since_ms.map(|since| since.saturating_add(self.detached_ms));
        let lifetime = self.lifetime_ends_ms.filter(|_| !frozen);
        [detached, lifetime].into_iter().flatten().min()
    }

    /// Time in which the sandbox stood still doesn't count. A lifetime that was just given is whole.
    pub fn make_up_for(&mut self, lost_ms: u64, lifetime: bool) {
        self.started_ms += lost_ms;
        if lifetime && let Some(ends_ms) = &mut self.lifetime_ends_ms {
            *ends_ms = ends_ms.saturating_add(lost_ms);
        }
    }

    pub fn configure(&mut self, fields: &Fields<'_>) -> Outcome<Map> {
        let sandbox = fields.bytes("sandbox")?;
        if sandbox.len() > NAME_BYTES_MAX || !sandbox.is_ascii() {
            return Err(Failure::invalid("sandbox is not a name"));
        }
        let detached_ms = fields.number("detachedMs")?;
        let lifetime_ms = fields.optional_number("lifetimeMs")?;
        self.sandbox = sandbox.to_vec();
        self.detached_ms = detached_ms;
        self.lifetime_ends_ms = lifetime_ms.map(|ms| now_ms().saturating_add(ms));
        Ok(pack::map())
    }
}

impl Agent {
    pub fn hello(&self) -> Vec<u8> {
        let sandbox = core::str::from_utf8(&self.identity.sandbox).unwrap_or_default();
        pack::map()
            .number("protocol", 1)
            .text("agent", AGENT)
            .bytes("boot", &self.identity.boot)
            .text("sandbox", sandbox)
            .number("uptimeMs", now_ms().saturating_sub(self.identity.started_ms))
            .flag("frozen", self.frozen())
            .array("worlds", self.worlds.len(), |out| {
                for world in &self.worlds {
                    let map = pack::map().text("world", &world.name);
                    out.extend(map.text("state", world.state.as_str()).finish());
                }
            })
            .array("execs", self.execs.listed().count(), |out| {
                for exec in self.execs.listed() {
                    let map = pack::map().text("exec", &exec.name);
                    let map = map.text("world", &self.worlds[exec.world].name);
                    out.extend(map.flag("running", exec.running()).finish());
                }
            })
            .finish()
    }
}
