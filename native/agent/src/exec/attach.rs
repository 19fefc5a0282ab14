use super::kept::Next;
use super::output::offset_event;
use super::{Reader, State};
use crate::agent::Agent;
use crate::failure::{Code, Failure, Outcome};
use crate::pack::{self, Fields};
use crate::streams::Stream;

impl Agent {
    /// The latest reader reads; one before it is told that it was cancelled.
    pub fn request_attach(&mut self, id: u32, fields: &Fields<'_>) -> Outcome<()> {
        let serial = self.execs.find(fields.bytes("exec")?)?;
        let from = [fields.number("stdoutFrom")?, fields.number("stderrFrom")?];
        if let Some(before) = self.execs.get(serial).and_then(|exec| exec.reader.take()) {
            self.close_stream(before);
            self.fail(before, &Failure::new(Code::Cancelled, "another reader attached"));
        }
        let Some(exec) = self.execs.get(serial) else {
            return Ok(());
        };
        exec.reader = Some(id);
        let mut positions = [0; 2];
        let mut dropped = [0; 2];
        for (at, output) in exec.outputs.iter().enumerate() {
            let asked = from[at].min(output.kept.total());
            positions[at] = match output.kept.next(asked) {
                Next::Gap(offset) => offset,
                _ => asked,
            };
            dropped[at] = positions[at] - asked;
        }
        let (state, pid) = (exec.state, exec.pid);
        if state != State::Starting {
            self.tell(id, pack::map().text("kind", "started").number("pid", pid));
        }
        for at in 0..2 {
            self.tell(id, offset_event(at as u8 + 1, positions[at], dropped[at]));
        }
        self.streams.add(id, Stream::Exec(Reader::new(serial, positions)));
        self.streams.mark_ready(id);
        Ok(())
    }
}
