//! The way out of a sandbox without a network: a port of its loopback whose connections the daemon answers. What is
//! said on them, and what may be reached, the daemon knows alone.
//!
//! ```
//! closed ─ relay.listen ─▶ taking ─ the peer is gone ─▶ held ─ relay.listen ─▶ taking
//! ```
//! The listeners are kept until the sandbox ends, so that no process of a world can have the port. While they are
//! only held, connections wait in their queue for the next daemon. A copy of the sandbox that has no way out has
//! none of them: who connects is refused, and waits for nobody.

mod relayed;

use alloc::format;
use alloc::vec::Vec;

use sandlot_frames::Kind;

use crate::agent::Agent;
use crate::failure::{Code, Failure, Outcome};
use crate::limits::{RELAY_BACKLOG, RELAYED_MAX, STREAMS_MAX};
use crate::pack::{self, Fields, Map};
use crate::streams::Stream;
use crate::sys::network::{self, Loopback};
use crate::sys::poller::{Interest, Watched};
use crate::token::Token;
pub use relayed::{Opener, Relayed};

#[derive(Default)]
pub struct Relay {
    port: u16,
    listeners: Vec<Watched>,
    /// The present peer has asked for the connections.
    taking: bool,
    /// Connections that are open.
    open: usize,
    /// Those that broke off with a peer since one was answered last, and of them those that had asked and heard nothing.
    broken: usize,
    unanswered: usize,
}

impl Relay {
    /// The port that it has, where it has one.
    pub fn port(&self) -> Option<u16> {
        (!self.listeners.is_empty()).then_some(self.port)
    }

    pub fn forget_peer(&mut self) {
        self.taking = false;
    }

    /// Whoever lost a connection has had another one since.
    pub fn note_answered(&mut self) {
        self.broken = 0;
        self.unanswered = 0;
    }
}

impl Agent {
    pub fn request_listen(&mut self, fields: &Fields<'_>) -> Outcome<Map> {
        let port = fields.number("port")?;
        self.hold_port(port)?;
        self.relay.taking = true;
        let Relay { broken, unanswered, .. } = self.relay;
        Ok(pack::map().number("broken", broken as u64).number("unanswered", unanswered as u64))
    }

    /// The peer goes, and with it what is open.
    pub fn note_broken(&mut self) {
        self.relay.broken += self.relay.open;
        for id in self.streams.ids() {
            if let Some(Stream::Relayed(relayed)) = self.streams.get(id) {
                self.relay.unanswered += usize::from(relayed.is_unanswered());
            }
        }
    }

    /// A copy holds the port where it has a way out, and closes it where it has none.
    pub fn relay_of_copy(&mut self, fields: &Fields<'_>) -> Outcome<()> {
        match fields.optional_number("relayPort")? {
            Some(port) => self.hold_port(port),
            None => {
                for mut listener in self.relay.listeners.drain(..) {
                    listener.watch(&self.poller, Interest::NONE);
                }
                Ok(())
            }
        }
    }

    fn hold_port(&mut self, port: u64) -> Outcome<()> {
        let port = u16::try_from(port).ok().filter(|port| *port >= 1024);
        let port = port.ok_or_else(|| Failure::invalid("port is not one of 1024 to 65535"))?;
        if self.relay.listeners.is_empty() {
            self.relay.listeners = listen(port)?;
            self.relay.port = port;
        } else if self.relay.port != port {
            let at = self.relay.port;
            return Err(Failure::new(Code::Exists, format!("the relay listens on port {at}")));
        }
        Ok(())
    }

    /// Connections are taken while there is room for them; others wait in the queue.
    pub fn watch_relay(&mut self) {
        let room = self.relay.open < RELAYED_MAX
            && self.streams.count() < STREAMS_MAX
            && !self.connection.busy();
        let interest = Interest::READ.if_true(self.relay.taking && room && !self.frozen());
        for listener in &mut self.relay.listeners {
            listener.watch(&self.poller, interest);
        }
    }

    /// One of each listener; the poller tells again of more.
    pub fn accept_connections(&mut self) {
        for at in 0..self.relay.listeners.len() {
            match network::accept(&self.relay.listeners[at].fd) {
                Ok(socket) => self.relay_connection(socket),
                Err(libc::EAGAIN | libc::ECONNABORTED) => {}
                // Told again at once, it would keep the loop from sleeping.
                Err(_) => self.relay.taking = false,
            }
        }
    }

    fn relay_connection(&mut self, socket: crate::sys::fd::Fd) {
        let Some(id) = self.streams.next_own() else {
            return;
        };
        let Ok(relayed) = Relayed::new(socket, id, Opener::Inside) else {
            return;
        };
        self.relay.open += 1;
        self.streams.add(id, Stream::Relayed(relayed));
        self.connection.send(Kind::Open, 0, id, &pack::map().text("op", "relay.connect").finish());
        self.streams.mark_ready(id);
    }
}

fn listen(port: u16) -> Outcome<Vec<Watched>> {
    let failed = |errno| Failure::system(errno, format!("listener on port {port}"));
    let watched = |fd| Watched::new(fd, Token::Relay.pack());
    let first = network::listen(Loopback::V4, port, RELAY_BACKLOG).map_err(failed)?;
    let mut listeners = Vec::from([watched(first)]);
    match network::listen(Loopback::V6, port, RELAY_BACKLOG) {
        Ok(second) => listeners.push(watched(second)),
        Err(libc::EADDRINUSE) => return Err(failed(libc::EADDRINUSE)),
        // A sandbox without that address.
        Err(_) => {}
    }
    Ok(listeners)
}
