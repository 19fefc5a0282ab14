//! The daemon's side of the wire, as plain as a test wants it.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use sandlot_frames::{
    Decoder, Kind, Nonce, PADDING_BYTES, Prey, ReceiveWindow, SendWindow, encode, sync_payload,
};

use crate::bed::{Bed, open_fifo};
use crate::pack::Map;
use crate::said::Said;

pub struct Guest {
    input: OwnedFd,
    output: OwnedFd,
    decoder: Decoder,
    unsent: Vec<u8>,
    next_id: u32,
    streams: BTreeMap<u32, Stream>,
    pub hello: Said,
    /// Whether data is granted anew as it comes.
    pub granting: bool,
    /// Whether the bytes of data are kept, or only counted.
    pub keeping: bool,
}

#[derive(Default)]
struct Stream {
    events: Vec<Said>,
    data: BTreeMap<u8, Vec<u8>>,
    counts: BTreeMap<u8, u64>,
    received: BTreeMap<u8, ReceiveWindow>,
    window: SendWindow,
    outcome: Option<Result<Said, Said>>,
}

pub const PATIENCE: Duration = Duration::from_secs(90);

impl Guest {
    pub fn attach(bed: &Bed, first: bool) -> Guest {
        let mut guest = Guest::open(&bed.fifo_in, &bed.fifo_out);
        let nonce: Nonce = std::array::from_fn(|at| at as u8 ^ std::process::id() as u8);
        if !first {
            guest.unsent.resize(PADDING_BYTES, 0);
        }
        encode(&mut guest.unsent, Kind::Sync, 0, 0, &sync_payload(&nonce));
        guest.decoder.hunt(Prey::SyncAck(nonce));
        let until = Instant::now() + PATIENCE;
        while guest.hello.is_nothing() {
            assert!(Instant::now() < until, "no hello; {}", bed.last_words());
            guest.turn(100);
        }
        guest
    }

    fn open(fifo_in: &Path, fifo_out: &Path) -> Guest {
        Guest {
            input: open_fifo(fifo_in, true),
            output: open_fifo(fifo_out, false),
            decoder: Decoder::new(),
            unsent: Vec::new(),
            next_id: 1,
            streams: BTreeMap::new(),
            hello: Said::Nothing,
            granting: true,
            keeping: true,
        }
    }

    pub fn open_stream(&mut self, request: Map) -> u32 {
        let id = self.next_id;
        self.next_id += 2;
        encode(&mut self.unsent, Kind::Open, 0, id, &request.finish());
        self.streams.insert(id, Stream::default());
        self.turn(0);
        id
    }

    /// A request without bytes of its own.
    pub fn call(&mut self, request: Map) -> Result<Said, Said> {
        let id = self.open_stream(request);
        self.outcome(id)
    }

    pub fn outcome(&mut self, id: u32) -> Result<Said, Said> {
        self.until(&format!("the outcome of stream {id}"), |guest| {
            guest.streams[&id].outcome.is_some()
        });
        self.streams.get_mut(&id).unwrap().outcome.take().unwrap()
    }

    pub fn is_over(&self, id: u32) -> bool {
        self.streams[&id].outcome.is_some()
    }

    pub fn data(&mut self, id: u32, channel: u8) -> Vec<u8> {
        let stream = self.streams.get_mut(&id).unwrap();
        stream.data.remove(&channel).unwrap_or_default()
    }

    pub fn text(&mut self, id: u32, channel: u8) -> String {
        String::from_utf8_lossy(&self.data(id, channel)).into_owned()
    }

    pub fn count(&self, id: u32, channel: u8) -> u64 {
        self.streams[&id].counts.get(&channel).copied().unwrap_or(0)
    }

    pub fn events(&self, id: u32) -> &[Said] {
        &self.streams[&id].events
    }

    pub fn send_data(&mut self, id: u32, channel: u8, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.is_over(id) {
            let count = self.streams.get_mut(&id).unwrap().window.take(bytes.len().min(65_536));
            if count == 0 {
                self.turn(1000);
                continue;
            }
            encode(&mut self.unsent, Kind::Data, channel, id, &bytes[..count]);
            bytes = &bytes[count..];
            self.turn(0);
        }
    }

    pub fn send(&mut self, kind: Kind, channel: u8, id: u32, payload: &[u8]) {
        encode(&mut self.unsent, kind, channel, id, payload);
        self.turn(0);
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
        self.turn(0);
    }

    /// Bytes that the agent hasn't taken yet.
    pub fn unsent(&self) -> usize {
        self.unsent.len()
    }

    pub fn until(&mut self, what: &str, mut done: impl FnMut(&Guest) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !done(self) {
            assert!(Instant::now() < until, "waited in vain for {what}");
            self.turn(100);
        }
    }

    /// Lets time pass while the pipes are served.
    pub fn serve_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.turn(10);
        }
    }

    /// Writes and reads what can be, waiting up to `timeout_ms` for anything.
    pub fn turn(&mut self, timeout_ms: i32) {
        let writing = if self.unsent.is_empty() { 0 } else { libc::POLLOUT };
        let mut polls = [
            libc::pollfd { fd: self.output.as_raw_fd(), events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: self.input.as_raw_fd(), events: writing, revents: 0 },
        ];
        unsafe { libc::poll(polls.as_mut_ptr(), 2, timeout_ms) };
        if !self.unsent.is_empty() {
            let (fd, unsent) = (self.input.as_raw_fd(), &self.unsent);
            let count = unsafe { libc::write(fd, unsent.as_ptr().cast(), unsent.len()) };
            if count > 0 {
                self.unsent.drain(..count as usize);
            }
        }
        let space = self.decoder.space();
        let count =
            unsafe { libc::read(self.output.as_raw_fd(), space.as_mut_ptr().cast(), space.len()) };
        if count > 0 {
            self.decoder.filled(count as usize);
            self.hear();
        }
    }

    fn hear(&mut self) {
        loop {
            let frame = match self.decoder.next() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(malformed) => panic!("the agent sent a malformed frame: {malformed:?}"),
            };
            match frame.kind {
                Kind::SyncAck | Kind::Pong => continue,
                Kind::Hello => {
                    self.hello = Said::parse(frame.payload);
                    continue;
                }
                _ => {}
            }
            let id = frame.stream;
            let stream = self.streams.get_mut(&id).expect("a frame for a stream that was opened");
            let said = || Said::parse(frame.payload);
            match frame.kind {
                Kind::Event => stream.events.push(said()),
                Kind::Result => stream.outcome = Some(Ok(said())),
                Kind::Error => stream.outcome = Some(Err(said())),
                Kind::Credit => stream.window.grant(frame.credit_bytes()),
                Kind::End => {}
                Kind::Data => {
                    let size = frame.payload.len();
                    *stream.counts.entry(frame.channel).or_default() += size as u64;
                    if self.keeping {
                        stream.data.entry(frame.channel).or_default().extend(frame.payload);
                    }
                    let window = stream.received.entry(frame.channel).or_default();
                    window.receive(size).expect("the agent keeps to its credit");
                    if self.granting
                        && let Some(grant) = window.consume(size)
                    {
                        let (channel, bytes) = (frame.channel, grant.to_le_bytes());
                        encode(&mut self.unsent, Kind::Credit, channel, id, &bytes);
                    }
                }
                other => panic!("the agent sent {other:?}"),
            }
        }
    }

    /// Makes up for grants that were held back.
    pub fn grant(&mut self, id: u32, channel: u8, bytes: u32) {
        let stream = self.streams.get_mut(&id).unwrap();
        stream.received.insert(channel, ReceiveWindow::default());
        self.send(Kind::Credit, channel, id, &bytes.to_le_bytes());
    }
}
