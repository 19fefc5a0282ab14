//! The golden bytes that the TypeScript codec is tested with too.

use sandlot_frames::{Decoder, Frame, Kind, Malformed, Nonce, Prey, encode};
use serde::Deserialize;

#[derive(Deserialize)]
struct Vectors {
    frames: Vec<Case>,
    malformed: Vec<Case>,
    hunts: Vec<Case>,
    recoveries: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    bytes: Vec<Piece>,
    frames: Vec<Expected>,
    reason: Option<String>,
    prey: Option<String>,
    nonce: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Hex(String),
    Repeat { repeat: String, times: usize },
}

#[derive(Deserialize)]
struct Expected {
    r#type: String,
    channel: u8,
    stream: u32,
    payload: Vec<Piece>,
}

type Got = (Kind, u8, u32, Vec<u8>);

#[derive(Clone, Copy)]
enum OnError {
    Stop,
    Hunt,
}

#[test]
fn frames() {
    let vectors = load();
    assert!(vectors.frames.len() > 15);
    for case in &vectors.frames {
        check(case, None, OnError::Stop, None);
    }
}

#[test]
fn malformed() {
    let vectors = load();
    assert!(vectors.malformed.len() > 15);
    for case in &vectors.malformed {
        let reason = case.reason.as_deref();
        assert!(reason.is_some());
        check(case, None, OnError::Stop, reason);
    }
}

#[test]
fn hunts() {
    let vectors = load();
    assert!(vectors.hunts.len() > 10);
    for case in &vectors.hunts {
        let prey = match (case.prey.as_deref(), &case.nonce) {
            (Some("sync"), _) => Prey::Sync,
            (Some("syncAck"), Some(hex)) => {
                Prey::SyncAck(Nonce::try_from(unhex(hex)).expect("16 bytes"))
            }
            other => panic!("{other:?}"),
        };
        check(case, Some(prey), OnError::Stop, None);
    }
}

#[test]
fn recoveries() {
    let vectors = load();
    assert!(vectors.recoveries.len() > 5);
    for case in &vectors.recoveries {
        check(case, None, OnError::Hunt, None);
    }
}

#[test]
fn encoding_gives_the_golden_bytes() {
    let mut checked = 0;
    for case in load().frames.iter().filter(|case| !case.name.contains("padding")) {
        let mut out = Vec::new();
        for frame in &case.frames {
            let payload = join(&frame.payload);
            encode(&mut out, kind(&frame.r#type), frame.channel, frame.stream, &payload);
        }
        let golden = join(&case.bytes);
        assert_eq!(out, golden[..out.len()], "{}", case.name);
        checked += 1;
    }
    assert!(checked > 15);
}

fn check(case: &Case, prey: Option<Prey>, on_error: OnError, reason: Option<&str>) {
    let bytes = join(&case.bytes);
    let expected: Vec<Got> = case
        .frames
        .iter()
        .map(|frame| (kind(&frame.r#type), frame.channel, frame.stream, join(&frame.payload)))
        .collect();
    let mut reads = vec![usize::MAX, 65_536, 4096, 61, 13];
    if bytes.len() < 5000 {
        reads.extend([1, 2, 3, 5, 7, 12]);
    }
    for read in reads {
        let (got, error) = decode(&bytes, read, prey, on_error);
        assert_eq!(got, expected, "{} in reads of {read}", case.name);
        assert_eq!(error.map(Malformed::as_str), reason, "{} in reads of {read}", case.name);
    }
}

fn decode(
    bytes: &[u8],
    read: usize,
    prey: Option<Prey>,
    on_error: OnError,
) -> (Vec<Got>, Option<Malformed>) {
    let mut decoder = Decoder::new();
    if let Some(prey) = prey {
        decoder.hunt(prey);
    }
    let mut got = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let space = decoder.space();
        let count = space.len().min(read).min(rest.len());
        assert!(count > 0, "the decoder has no room");
        space[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        decoder.filled(count);
        loop {
            match decoder.next() {
                Ok(Some(frame)) => got.push(own(frame)),
                Ok(None) => break,
                Err(malformed) => match on_error {
                    OnError::Stop => return (got, Some(malformed)),
                    OnError::Hunt => decoder.hunt(Prey::Sync),
                },
            }
        }
    }
    (got, None)
}

fn own(frame: Frame<'_>) -> Got {
    (frame.kind, frame.channel, frame.stream, frame.payload.to_vec())
}

fn load() -> Vectors {
    serde_json::from_str(include_str!("../vectors.json")).expect("vectors.json parses")
}

fn join(pieces: &[Piece]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Hex(hex) => bytes.extend(unhex(hex)),
            Piece::Repeat { repeat, times } => bytes.extend(unhex(repeat).repeat(*times)),
        }
    }
    bytes
}

fn unhex(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2));
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
        .collect()
}

fn kind(name: &str) -> Kind {
    match name {
        "hello" => Kind::Hello,
        "sync" => Kind::Sync,
        "syncAck" => Kind::SyncAck,
        "ping" => Kind::Ping,
        "pong" => Kind::Pong,
        "open" => Kind::Open,
        "data" => Kind::Data,
        "credit" => Kind::Credit,
        "end" => Kind::End,
        "event" => Kind::Event,
        "result" => Kind::Result,
        "error" => Kind::Error,
        "cancel" => Kind::Cancel,
        other => panic!("{other}"),
    }
}
