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
#[cfg(not(test))]
mod glue;
mod identity;
mod incoming;
mod keeper;
mod limits;
mod pack;
mod requests;
mod sink;
mod streams;
mod sys;
mod token;
mod transfers;
mod worlds;

/// With an argument it is a warm-up: started by a keeper, it ends at once.
#[cfg(not(test))]
#[unsafe(no_mangle)]
extern "C" fn main(count: i32, arguments: *const *const core::ffi::c_char) -> i32 {
    if count != 1 {
        return 0;
    }
    let program = unsafe { core::ffi::CStr::from_ptr(*arguments) }.to_bytes();
    agent::run(program)
}
