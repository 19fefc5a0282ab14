//! A command at a terminal: both directions are one open file.

use super::{Exec, State};
use crate::agent::Agent;
use crate::clock::now_ms;
use crate::failure::{Code, Failure, Outcome};
use crate::keeper::terminal::size;
use crate::limits::LEFTOVER_PAUSE_MS;
use crate::pack::{self, Fields};
use crate::sink::Sink;
use crate::sys::fd::{Fd, set_nonblocking};
use crate::sys::poller::Watched;
use crate::sys::terminal::set_size;
use crate::token::Token;

impl Agent {
    /// It came with the news of the start.
    pub(super) fn connect_terminal(&mut self, serial: u32, screen: Fd) {
        set_nonblocking(screen.raw(), true);
        let Some(exec) = self.execs.get(serial).filter(|exec| exec.terminal) else {
            return;
        };
        if let Ok(keys) = screen.duplicate() {
            exec.stdin = Some(Sink::new(Watched::new(keys, Token::Stdin(serial).pack())));
        }
        exec.outputs[0].pipe = Some(Watched::new(screen, Token::Stdout(serial).pack()));
    }

    /// Its command has ended. Where others hold the terminal nothing tells that it is empty, so it is read until it is, or until its
    /// reader is behind: then it is looked at again.
    pub(super) fn drain_terminal(&mut self, serial: u32) {
        loop {
            let before = self.unread_of(serial);
            if before.is_none() {
                return self.settle_exec(serial);
            }
            self.on_output(serial, 0);
            if self.unread_of(serial) == before {
                if let Some(exec) = self.execs.get(serial) {
                    exec.leftovers_at_ms = Some(now_ms() + LEFTOVER_PAUSE_MS);
                }
                return;
            }
        }
    }

    /// What may be left to read of a terminal whose command has ended; `None` where nothing is.
    fn unread_of(&mut self, serial: u32) -> Option<usize> {
        let exec = self.execs.get(serial).filter(|exec| exec.state == State::Draining)?;
        exec.outputs[0].pipe.as_ref()?;
        exec.outputs[0].unread.filter(|left| *left > 0)
    }

    pub fn request_resize(&mut self, id: u32, fields: &Fields<'_>) -> Outcome<()> {
        let serial = self.execs.find(fields.bytes("exec")?)?;
        let size = size(fields)?.ok_or_else(|| Failure::invalid("columns and rows are missing"))?;
        if let Some(exec) = self.execs.get(serial) {
            exec.resize(size)?;
        }
        self.succeed(id, pack::map());
        Ok(())
    }
}

impl Exec {
    /// Of one that has ended nothing is left to resize, and that is no failure.
    fn resize(&self, size: crate::sys::terminal::Size) -> Outcome<()> {
        match &self.outputs[0].pipe {
            _ if !self.terminal => Err(Failure::invalid("the command has no terminal")),
            None if self.state == State::Starting => {
                Err(Failure::new(Code::Busy, "the command is being started"))
            }
            None => Ok(()),
            Some(screen) => set_size(&screen.fd, size)
                .map_err(|errno| Failure::system(errno, "the size of a terminal")),
        }
    }
}
