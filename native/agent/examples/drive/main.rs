//! Drives the agent on real gVisor, without any of the TypeScript side:
//!   SANDLOT_RUNSC=… cargo run --profile drive -p sandlot-agent --example drive [NAME…]
//! after `cargo build --release`
//! Each scenario has a sandbox of its own. Needs root, busybox-static and mkfs.erofs.

#![allow(dead_code)]

extern crate alloc;

mod basics;
mod bed;
#[path = "../../src/failure.rs"]
mod failure;
mod guest;
#[path = "../../src/pack/mod.rs"]
mod pack;
mod said;
mod scenes;

use std::time::Instant;

use bed::Images;

type Scenario = (&'static str, fn(&Images));

const SCENARIOS: &[Scenario] = &[("first_command", basics::first_command)];

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let chosen: Vec<&Scenario> = SCENARIOS
        .iter()
        .filter(|(name, _)| {
            wanted.is_empty() || wanted.iter().any(|want| name.contains(want.as_str()))
        })
        .collect();
    assert!(!chosen.is_empty(), "no scenario of that name");
    let images = Images::build();
    let mut failed = Vec::new();
    for (name, scenario) in chosen {
        let started = Instant::now();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scenario(&images)));
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        println!("{name}: {verdict} in {} ms", started.elapsed().as_millis());
        if outcome.is_err() {
            failed.push(*name);
        }
    }
    drop(images);
    if !failed.is_empty() {
        println!("failed: {failed:?}");
        std::process::exit(1);
    }
}
