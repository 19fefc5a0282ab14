//! Requests about what listens: `port.list`, and `port.wait`, which looks again and again for all that wait at once.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::listening::{Listener, listeners};
use crate::agent::Agent;
use crate::clock::now_ms;
use crate::failure::{Code, Failure, Outcome};
use crate::limits::{LISTEN_LOOK_MS, LISTEN_LOOK_SHARE, PORT_WAITS_MAX};
use crate::pack::{self, Fields};
use crate::streams::Stream;

/// Who waits for which port, and when it is looked.
#[derive(Default)]
pub struct Waits {
    ports: BTreeMap<u32, u16>,
    look_at_ms: u64,
}

impl Waits {
    pub fn look_at_ms(&self) -> Option<u64> {
        (!self.ports.is_empty()).then_some(self.look_at_ms)
    }
}

impl Agent {
    pub fn request_listeners(&mut self, id: u32) -> Outcome<()> {
        let listeners = self.listeners()?;
        let body = pack::map().array("ports", listeners.len(), |out| {
            for Listener { port, address } in &listeners {
                let each = pack::map().number("port", u64::from(*port)).bytes("address", address);
                out.extend(each.finish());
            }
        });
        self.succeed(id, body);
        Ok(())
    }

    pub fn request_wait(&mut self, id: u32, fields: &Fields<'_>) -> Outcome<()> {
        let port = self.port_of(fields)?;
        if self.ports.waits.ports.len() >= PORT_WAITS_MAX {
            return Err(Failure::new(Code::Limit, "too many waits for ports"));
        }
        if self.ports.waits.ports.is_empty() {
            self.ports.waits.look_at_ms = now_ms();
        }
        self.ports.waits.ports.insert(id, port);
        self.streams.add(id, Stream::PortWait);
        Ok(())
    }

    pub fn forget_wait(&mut self, id: u32) {
        self.ports.waits.ports.remove(&id);
    }

    pub fn ports_on_time(&mut self, now: u64) {
        if self.ports.waits.look_at_ms().is_none_or(|at| at > now) {
            return;
        }
        let found = self.listeners();
        // A table of many sockets takes long to read: no more than a share of all time goes into it.
        let took_ms = now_ms().saturating_sub(now);
        let pause_ms = LISTEN_LOOK_MS.max(took_ms * LISTEN_LOOK_SHARE);
        self.ports.waits.look_at_ms = now_ms() + pause_ms;
        let waiting: Vec<(u32, u16)> =
            self.ports.waits.ports.iter().map(|(id, port)| (*id, *port)).collect();
        for (id, wanted) in waiting {
            match &found {
                Ok(listeners) if !listeners.iter().any(|each| each.is_reached_at(wanted)) => {}
                Ok(_) => {
                    self.close_stream(id);
                    self.succeed(id, pack::map());
                }
                Err(failure) => {
                    self.close_stream(id);
                    self.fail(id, failure);
                }
            }
        }
    }

    /// Without the relay's own.
    fn listeners(&self) -> Outcome<Vec<Listener>> {
        let found = listeners().map_err(|errno| Failure::system(errno, "table of sockets"))?;
        Ok(found.into_iter().filter(|each| self.relay.port() != Some(each.port)).collect())
    }
}

impl Listener {
    /// Whether a connection to one of the two addresses of the loopback would come to it.
    fn is_reached_at(&self, port: u16) -> bool {
        let (most, last) = (self.address.split_last(), self.address.last());
        let any = self.address.iter().all(|byte| *byte == 0);
        let first = self.address == [127, 0, 0, 1];
        let sixth = most.is_some_and(|(_, rest)| rest.len() == 15 && rest.iter().all(|b| *b == 0));
        self.port == port && (any || first || (sixth && last == Some(&1)))
    }
}
