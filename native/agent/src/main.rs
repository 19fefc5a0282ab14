//! The agent: PID 1 of a sandbox. `README.md` says what the host provides and how the parts fit.
#![cfg_attr(not(test), no_std, no_main)]
#![cfg_attr(test, allow(dead_code))]

extern crate alloc;

mod agent;
mod clock;
mod connection;
mod exec;
mod failure;
mod files;
mod freeze;
#[cfg(not(test))]
mod glue;
mod identity;
mod incoming;
mod keeper;
mod limits;
mod pack;
mod ports;
mod relay;
mod requests;
mod sink;
mod streams;
mod sys;
mod token;
mod transfers;
mod worlds;

#[cfg(not(test))]
#[unsafe(no_mangle)]
extern "C" fn main() -> i32 {
    agent::run()
}
