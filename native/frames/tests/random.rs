//! Random bytes, random splits: never a panic, and the good frames always come through.

use sandlot_frames::{
    Decoder, FRAME_BYTES_MAX, Kind, Nonce, PADDING_BYTES, Prey, ReceiveWindow, SendWindow,
    WINDOW_BYTES, encode, sync_payload,
};
use std::time::{Duration, Instant};

const BUDGET: Duration = Duration::from_millis(600);
const SEED: u64 = 0x5EED_0001;

#[test]
fn any_bytes_are_survived() {
    let mut random = Random(SEED);
    let until = Instant::now() + BUDGET;
    let mut rounds = 0;
    while rounds < 100 || Instant::now() < until {
        let mut bytes = vec![0; random.below(20_000)];
        for byte in &mut bytes {
            *byte = if random.below(3) == 0 {
                [0xA7, 0xA8, 0x00, 0x11, 0x02][random.below(5)]
            } else {
                random.next() as u8
            };
        }
        let hunting = random.below(2) == 0;
        feed(&mut Decoder::new(), &bytes, &mut random, hunting, &mut |_, _, _| {});
        rounds += 1;
    }
}

#[test]
fn frames_come_through_any_split() {
    let mut random = Random(SEED + 1);
    let until = Instant::now() + BUDGET;
    let mut rounds = 0;
    while rounds < 20 || Instant::now() < until {
        let mut bytes = Vec::new();
        let mut sent = Vec::new();
        for _ in 0..random.below(30) {
            let longest = if random.below(8) == 0 { 65_536 } else { 300 };
            let mut payload = vec![0; 1 + random.below(longest)];
            payload.iter_mut().for_each(|byte| *byte = random.next() as u8);
            let stream = random.next() as u32;
            encode(&mut bytes, Kind::Data, 1, stream, &payload);
            bytes.resize(bytes.len() + random.below(3), 0);
            sent.push((stream, payload));
        }
        let mut got = Vec::new();
        feed(&mut Decoder::new(), &bytes, &mut random, false, &mut |_, stream, payload| {
            got.push((stream, payload.to_vec()));
        });
        assert!(got == sent, "seed {SEED} round {rounds}");
        rounds += 1;
    }
}

#[test]
fn a_sync_is_found_behind_any_cut_frame() {
    let mut random = Random(SEED + 2);
    let until = Instant::now() + BUDGET;
    let mut rounds = 0;
    while rounds < 20 || Instant::now() < until {
        let mut bytes = Vec::new();
        let mut payload = vec![0; 1 + random.below(65_536)];
        payload.iter_mut().for_each(|byte| *byte = random.next() as u8);
        encode(&mut bytes, Kind::Data, 0, 1, &payload);
        bytes.truncate(random.below(bytes.len()));
        bytes.resize(bytes.len() + PADDING_BYTES, 0);
        let nonce: Nonce = std::array::from_fn(|_| random.next() as u8);
        encode(&mut bytes, Kind::Sync, 0, 0, &sync_payload(&nonce));
        let mut syncs = 0;
        feed(&mut Decoder::new(), &bytes, &mut random, true, &mut |kind, _, payload| {
            assert_eq!(kind, Kind::Sync);
            assert_eq!(payload, sync_payload(&nonce));
            syncs += 1;
        });
        assert_eq!(syncs, 1, "round {rounds}");
        rounds += 1;
    }
}

#[test]
fn credit_never_runs_dry_and_is_never_exceeded() {
    let mut random = Random(SEED + 3);
    let (mut sender, mut receiver) = (SendWindow::default(), ReceiveWindow::default());
    let (mut under_way, mut held, mut passed) = (0usize, 0usize, 0u64);
    while passed < 100 * u64::from(WINDOW_BYTES) {
        let sent = sender.take(1 + random.below(65_536));
        receiver.receive(sent).expect("within the credit");
        held += sent;
        let out = if random.below(4) == 0 { held } else { random.below(held + 1) };
        held -= out;
        passed += out as u64;
        if let Some(grant) = receiver.consume(out) {
            under_way += grant as usize;
        }
        sender.grant(std::mem::take(&mut under_way) as u32);
        assert!(held <= WINDOW_BYTES as usize);
        assert!(held > 0 || sender.left() > WINDOW_BYTES as usize / 2);
    }
    assert!(receiver.receive(WINDOW_BYTES as usize + 1).is_err());
}

fn feed(
    decoder: &mut Decoder,
    bytes: &[u8],
    random: &mut Random,
    hunting: bool,
    seen: &mut dyn FnMut(Kind, u32, &[u8]),
) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let most = if random.below(2) == 0 { 20 } else { 70_000 };
        let space = decoder.space();
        assert!(!space.is_empty() && space.len() <= 2 * FRAME_BYTES_MAX);
        let count = (1 + random.below(most)).min(space.len()).min(rest.len());
        space[..count].copy_from_slice(&rest[..count]);
        decoder.filled(count);
        rest = &rest[count..];
        loop {
            match decoder.next() {
                Ok(Some(frame)) => seen(frame.kind, frame.stream, frame.payload),
                Ok(None) => break,
                Err(_) if hunting => decoder.hunt(Prey::Sync),
                Err(_) => {}
            }
        }
    }
}

/// xorshift64*: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() as usize % limit.max(1)
    }
}
