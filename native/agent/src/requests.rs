use crate::agent::Agent;
use crate::failure::{Code, Failure, Outcome};
use crate::pack::{self, Fields};
use crate::streams::Stream;

impl Agent {
    /// Starts a request. A failure here is its `error`; else its stream is open, or it is answered.
    pub fn request(&mut self, stream: u32, payload: &[u8]) -> Outcome<()> {
        let fields = pack::parse_map(payload)?;
        if self.frozen() && !matches!(fields.bytes("op")?, b"freeze" | b"thaw") {
            return Err(Failure::new(Code::Busy, "the sandbox is being saved"));
        }
        match fields.bytes("op")? {
            b"freeze" => self.request_freeze(stream),
            b"thaw" => self.request_thaw(stream, &fields, payload),
            b"configure" => {
                let body = self.identity.configure(&fields)?;
                self.succeed(stream, body);
                Ok(())
            }
            b"watch" => {
                self.streams.add(stream, Stream::Watch);
                self.tell_known_flags(stream);
                Ok(())
            }
            b"stats" => {
                let body = self.stats();
                self.succeed(stream, body);
                Ok(())
            }
            b"relay.listen" => {
                let body = self.request_listen(&fields)?;
                self.succeed(stream, body);
                Ok(())
            }
            b"port.connect" => self.request_connect(stream, &fields),
            b"port.list" => self.request_listeners(stream),
            b"port.wait" => self.request_wait(stream, &fields),
            b"world.prepare" => self.request_prepare(stream, &fields),
            b"world.open" => self.request_open(stream, &fields, payload),
            b"world.end" => self.request_end(stream, &fields),
            b"exec.start" => self.request_start(stream, &fields, payload),
            b"exec.attach" => self.request_attach(stream, &fields),
            b"exec.kill" => self.request_kill(stream, &fields),
            b"exec.resize" => self.request_resize(stream, &fields),
            b"exec.list" => {
                let body = self.exec_list();
                self.succeed(stream, body);
                Ok(())
            }
            b"exec.forget" => self.request_forget(stream, &fields),
            b"file.read" => self.request_read(stream, &fields, payload),
            b"file.write" => self.request_write(stream, &fields, payload),
            b"file.list" | b"tar.out" => self.request_piped_out(stream, &fields, payload),
            b"tar.difference" => self.request_difference(stream, &fields, payload),
            b"tar.in" => self.request_piped_in(stream, &fields, payload),
            b"file.stat"
            | b"file.makeDirectory"
            | b"file.remove"
            | b"file.rename"
            | b"file.chmod"
            | b"process.list" => self.request_answer(stream, &fields, payload),
            _ => Err(Failure::new(Code::Unsupported, "no such request")),
        }
    }

    /// The world that a request for files names: open, or ended. What an episode left is still read by its graders.
    pub fn world_with_files(&self, fields: &Fields<'_>) -> Outcome<usize> {
        let world = self.find_world(fields.bytes("world")?)?;
        match self.worlds[world].has_files() {
            true => Ok(world),
            false => Err(Failure::new(Code::WorldNotOpen, "the world is not open")),
        }
    }

    /// The world that a request names, which has to be open.
    pub fn open_world(&self, fields: &Fields<'_>) -> Outcome<usize> {
        let world = self.find_world(fields.bytes("world")?)?;
        match self.worlds[world].is_open() {
            true => Ok(world),
            false => Err(Failure::new(Code::WorldNotOpen, "the world is not open")),
        }
    }
}
