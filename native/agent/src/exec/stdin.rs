use crate::agent::Agent;
use crate::incoming::Broken;
use crate::streams::Stream;

const STDIN: u8 = 0;

impl Agent {
    pub fn on_stdin_data(&mut self, id: u32, bytes: &[u8]) -> Result<(), Broken> {
        let Some(Stream::Exec(reader)) = self.streams.get(id) else {
            return Ok(());
        };
        reader.stdin.receive(bytes.len()).map_err(|_| Broken)?;
        let serial = reader.serial;
        let stdin = self.execs.get(serial).and_then(|exec| exec.stdin.as_mut());
        // Bytes that nobody reads are taken all the same: the sender isn't held up by them.
        let consumed = match stdin {
            Some(stdin) => stdin.push(bytes, &self.poller),
            None => bytes.len(),
        };
        self.grant_stdin(id, consumed);
        Ok(())
    }

    /// At a terminal that is typed: who reads it next goes on typing.
    pub fn end_stdin(&mut self, serial: u32) {
        let pipe = self.execs.get(serial).filter(|exec| !exec.terminal);
        if let Some(stdin) = pipe.and_then(|exec| exec.stdin.as_mut()) {
            stdin.end(&self.poller);
        }
    }

    /// The command takes more.
    pub fn on_stdin(&mut self, serial: u32) {
        let Some(exec) = self.execs.get(serial) else {
            return;
        };
        let reader = exec.reader;
        let consumed = exec.stdin.as_mut().map_or(0, |stdin| stdin.flush(&self.poller));
        if let Some(id) = reader {
            self.grant_stdin(id, consumed);
        }
    }

    fn grant_stdin(&mut self, id: u32, consumed: usize) {
        if let Some(Stream::Exec(reader)) = self.streams.get(id)
            && let Some(grant) = reader.stdin.consume(consumed)
        {
            self.connection.send(sandlot_frames::Kind::Credit, STDIN, id, &grant.to_le_bytes());
        }
    }
}
