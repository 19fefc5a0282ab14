//! The way into a sandbox: connections of the daemon to what processes of its worlds listen on, all on the one loopback.
//!
//! ```
//! port.connect ─▶ connecting 127.0.0.1 ─ refused ─▶ connecting ::1 ─ refused ─▶ error `refused`
//!                     └───── made ─────┬─── made ───────┘
//!                                      ▼
//!                   event `connected`, then as any relayed connection (`relay/relayed.rs`)
//! ```

mod listening;
mod wait;

use alloc::format;

use crate::agent::Agent;
use crate::failure::{Code, Failure, Outcome};
use crate::limits::PORT_CONNECTIONS_MAX;
use crate::pack::{self, Fields};
use crate::relay::{Opener, Relayed};
use crate::streams::Stream;
use crate::sys::fd::Fd;
use crate::sys::network::{self, Loopback};
use crate::sys::poller::{Interest, Watched};
use crate::token::Token;
pub use wait::Waits;

#[derive(Default)]
pub struct Ports {
    /// Connections that are open, or being made.
    pub open: usize,
    pub waits: Waits,
}

/// A connection that is on its way.
pub struct Connecting {
    socket: Watched,
    loopback: Loopback,
    port: u16,
}

impl Agent {
    pub fn request_connect(&mut self, id: u32, fields: &Fields<'_>) -> Outcome<()> {
        let port = self.port_of(fields)?;
        if self.ports.open >= PORT_CONNECTIONS_MAX {
            return Err(Failure::new(Code::Limit, "too many connections to ports are open"));
        }
        self.connect_port(id, Loopback::V4, port)
    }

    /// A port that processes of the worlds may listen on: never the relay's, whose connections the daemon would make to itself.
    pub(super) fn port_of(&self, fields: &Fields<'_>) -> Outcome<u16> {
        let port = u16::try_from(fields.number("port")?).ok().filter(|port| *port > 0);
        let port = port.ok_or_else(|| Failure::invalid("port is not one of 1 to 65535"))?;
        if self.relay.port() == Some(port) {
            return Err(Failure::invalid(format!("port {port} is the relay's")));
        }
        Ok(port)
    }

    fn connect_port(&mut self, id: u32, loopback: Loopback, port: u16) -> Outcome<()> {
        match network::connect(loopback, port) {
            Ok(socket) => {
                let mut socket = Watched::new(socket, Token::Stream(id).pack());
                socket.watch(&self.poller, Interest::WRITE);
                self.ports.open += 1;
                self.streams.add(id, Stream::Connecting(Connecting { socket, loopback, port }));
                Ok(())
            }
            Err(errno) => self.connect_failed(id, (loopback, port), errno),
        }
    }

    /// The other address may have what listens.
    fn connect_failed(
        &mut self,
        id: u32,
        (loopback, port): (Loopback, u16),
        errno: i32,
    ) -> Outcome<()> {
        match (loopback, errno) {
            (Loopback::V4, libc::ECONNREFUSED) => self.connect_port(id, Loopback::V6, port),
            // Without the second address nothing listens on it.
            (Loopback::V6, libc::ECONNREFUSED | libc::EADDRNOTAVAIL | libc::ENETUNREACH) => {
                Err(Failure::new(Code::Refused, format!("nothing listens on port {port}")))
            }
            _ => Err(Failure::system(errno, format!("connection to port {port}"))),
        }
    }

    /// It is made, or known to have failed.
    pub fn on_connecting(&mut self, id: u32) {
        let Some(Stream::Connecting(connecting)) = self.streams.get(id) else {
            return;
        };
        let (loopback, port) = (connecting.loopback, connecting.port);
        let errno = network::connect_error(&connecting.socket.fd);
        let made = match errno {
            0 => connecting.socket.fd.duplicate(),
            _ => Err(errno),
        };
        self.close_stream(id);
        let done = match made {
            Ok(socket) => self.relay_port(id, socket),
            Err(errno) => self.connect_failed(id, (loopback, port), errno),
        };
        if let Err(failure) = done {
            self.fail(id, &failure);
        }
    }

    fn relay_port(&mut self, id: u32, socket: Fd) -> Outcome<()> {
        let failed = |errno| Failure::system(errno, "connection");
        let relayed = Relayed::new(socket, id, Opener::Daemon).map_err(failed)?;
        self.ports.open += 1;
        self.streams.add(id, Stream::Relayed(relayed));
        self.tell(id, pack::map().text("kind", "connected"));
        self.streams.mark_ready(id);
        Ok(())
    }

    pub fn drop_connecting(&mut self, mut connecting: Connecting) {
        connecting.socket.watch(&self.poller, Interest::NONE);
        self.ports.open -= 1;
    }
}
