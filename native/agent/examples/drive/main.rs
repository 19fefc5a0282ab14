//! Drives the agent on real gVisor, without any of the TypeScript side:
//!   SANDLOT_RUNSC=… cargo run --profile drive -p sandlot-agent --example drive [NAME…]
//! after `cargo build --release`
//! Each scenario has a sandbox of its own. Needs root, busybox-static and mkfs.erofs.

#![allow(dead_code)]

extern crate alloc;

mod basics;
mod bed;
mod ends;
#[path = "../../src/failure.rs"]
mod failure;
mod files;
mod flow;
mod guest;
mod hostile;
#[path = "../../src/pack/mod.rs"]
mod pack;
mod peers;
mod said;
mod scenes;
mod tars;

use std::time::Instant;

use bed::Images;

type Scenario = (&'static str, fn(&Images));

const SCENARIOS: &[Scenario] = &[
    ("first_command", basics::first_command),
    ("command_line", basics::command_line),
    ("stdin", basics::stdin),
    ("what_a_world_sees", basics::what_a_world_sees),
    ("flood_buffered", flow::flood_buffered),
    ("flood_streamed", flow::flood_streamed),
    ("a_stalled_reader_stops_only_itself", flow::a_stalled_reader_stops_only_itself),
    ("detach_and_attach", flow::detach_and_attach),
    ("buffered_attach", flow::buffered_attach),
    ("two_hundred_at_once", flow::two_hundred_at_once),
    ("many_short_ones", flow::many_short_ones),
    ("raw_throughput", flow::raw_throughput),
    ("rings_are_bounded", flow::rings_are_bounded),
    ("a_silent_daemon_then_another", peers::a_silent_daemon_then_another),
    ("deadlines", hostile::deadlines),
    ("what_is_left_behind", ends::what_is_left_behind),
    ("signals", ends::signals),
    ("grade_world", ends::grade_world),
    ("a_world_that_kills_its_init", hostile::a_world_that_kills_its_init),
    ("destruction", hostile::destruction),
    ("fork_bomb", hostile::fork_bomb),
    ("threads", hostile::threads),
    ("full_disk", hostile::full_disk),
    ("detached_agent_ends", peers::detached_agent_ends),
    ("lifetime", peers::lifetime),
    ("a_new_peer_is_noticed", peers::a_new_peer_is_noticed),
    ("ending_while_starting", ends::ending_while_starting),
    ("a_world_that_stops_and_kills_all_it_sees", hostile::a_world_that_stops_and_kills_all_it_sees),
    ("a_world_ends_under_its_writers", ends::a_world_ends_under_its_writers),
    ("big_requests", hostile::big_requests),
    ("files", files::files),
    ("one_gibibyte", files::one_gibibyte),
    ("tars", tars::tars),
    ("hidden_helpers", tars::hidden_helpers),
];

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
