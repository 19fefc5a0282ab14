//! What becomes of each frame that comes from the daemon.

use sandlot_frames::{Frame, Kind, Nonce, Prey};

use crate::agent::Agent;
use crate::failure::{Code, Failure};
use crate::limits::STREAMS_MAX;

/// The frame breaks the protocol: hunt for the next sync.
pub struct Broken;

impl Agent {
    pub fn handle_frames(&mut self) {
        let Some(mut decoder) = self.connection.decoder.take() else {
            return;
        };
        loop {
            let handled = match decoder.next() {
                Ok(Some(frame)) => self.handle_frame(&frame),
                Ok(None) => break,
                Err(_) => Err(Broken),
            };
            if handled.is_err() {
                decoder.hunt(Prey::Sync);
            }
        }
        self.connection.decoder = Some(decoder);
    }

    fn handle_frame(&mut self, frame: &Frame<'_>) -> Result<(), Broken> {
        match frame.kind {
            Kind::Sync => return self.on_sync(frame),
            Kind::Ping if frame.stream == 0 => {
                self.connection.send(Kind::Pong, 0, 0, frame.payload);
                return Ok(());
            }
            Kind::Pong if frame.stream == 0 => return Ok(()),
            Kind::Open => return self.on_open(frame),
            Kind::Data | Kind::Credit | Kind::End => {}
            Kind::Cancel if !is_ours(frame.stream) => {}
            Kind::Event | Kind::Result | Kind::Error if is_ours(frame.stream) => {}
            _ => return Err(Broken),
        }
        if !self.streams.was_opened(frame.stream) {
            return Err(Broken);
        }
        if !self.streams.is_open(frame.stream) {
            return Ok(());
        }
        match frame.kind {
            Kind::Data => self.on_data(frame.stream, frame.channel, frame.payload),
            Kind::End => self.on_end(frame.stream, frame.channel),
            Kind::Credit => self.on_credit(frame.stream, frame.channel, frame.credit_bytes()),
            Kind::Event => Ok(()),
            Kind::Result => {
                self.on_relay_answered(frame.stream);
                Ok(())
            }
            Kind::Error => {
                self.close_stream(frame.stream);
                Ok(())
            }
            _ => {
                self.close_stream(frame.stream);
                self.fail(frame.stream, &Failure::new(Code::Cancelled, "cancelled"));
                Ok(())
            }
        }
    }

    fn on_sync(&mut self, frame: &Frame<'_>) -> Result<(), Broken> {
        let Some(nonce) = frame.payload.last_chunk::<16>() else {
            return Err(Broken);
        };
        if frame.stream != 0 || frame.channel != 0 {
            return Err(Broken);
        }
        let nonce: Nonce = *nonce;
        self.forget_peer();
        self.connection.acknowledge(&nonce);
        let hello = self.hello();
        self.connection.send(Kind::Hello, 0, 0, &hello);
        Ok(())
    }

    fn on_open(&mut self, frame: &Frame<'_>) -> Result<(), Broken> {
        self.streams.note_opened(frame.stream)?;
        if self.streams.count() >= STREAMS_MAX {
            self.fail(frame.stream, &Failure::new(Code::Limit, "too many streams are open"));
        } else if let Err(failure) = self.request(frame.stream, frame.payload) {
            self.fail(frame.stream, &failure);
        }
        Ok(())
    }

    /// Ends what belongs to a connection; commands live on.
    pub fn forget_peer(&mut self) {
        self.note_broken();
        self.connection.drop_output();
        for stream in self.streams.ids() {
            self.close_stream(stream);
        }
        self.streams.forget_ids();
        self.relay.forget_peer();
    }
}

/// The agent opens even ids.
fn is_ours(stream: u32) -> bool {
    stream.is_multiple_of(2)
}
