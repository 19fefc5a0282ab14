//! The host helper: the few things about a sandbox's start that Node.js can't do.
//!
//! The daemon starts one and keeps it. Requests are JSON lines on stdin, `{ "id": 1, "op": "launch", … }`;
//! replies are JSON lines on stdout, `{ "id": 1, "ok": { … } }` or `{ "id": 1, "error": { "stage", "message", "log"? } }`,
//! in the order in which the work ends. Every request has a thread of its own, so starts run in parallel.
//! The helper ends with its stdin. Sandboxes are in sessions of their own and live on, but those that it holds (`hold.rs`).

mod fail;
mod fifos;
mod hold;
mod launch;
mod mount;
mod reap;
mod request;
mod urpc;

use fail::Fail;
use request::Request;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const LINE_BYTES_MAX: u64 = 1 << 20;
const IN_FLIGHT_MAX: usize = 256;
/// What every sandbox inherits: a sentry holds host descriptors for those of its guest.
const NOFILE: libc::rlim_t = 1 << 20;

static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);
static OUT: Mutex<()> = Mutex::new(());

fn main() {
    prepare_process();
    let mut input = BufReader::new(std::io::stdin());
    loop {
        let mut line = Vec::new();
        match (&mut input).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Ok(_) if line.ends_with(b"\n") => serve(&line),
            // End of input, or a line over the limit: the daemon is gone or is not one.
            _ => return hold::end_all(),
        }
    }
}

fn prepare_process() {
    unsafe {
        let nofile = libc::rlimit { rlim_cur: NOFILE, rlim_max: NOFILE };
        libc::setrlimit(libc::RLIMIT_NOFILE, &nofile);
        let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &no_core);
        // A sandbox's first process becomes our child when runsc has ended: see `reap`.
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::umask(0o077);
    }
}

fn serve(line: &[u8]) {
    let request = match Request::parse(line) {
        Ok(request) => request,
        Err(fail) => return reply(&Value::Null, Err(fail)),
    };
    hold::note(&request);
    let letting = hold::LettingGo::of(&request);
    if IN_FLIGHT.fetch_add(1, Ordering::SeqCst) >= IN_FLIGHT_MAX {
        IN_FLIGHT.fetch_sub(1, Ordering::SeqCst);
        return reply(&request.id(), Err(Fail::new("busy", "too many requests at once")));
    }
    let id = request.id();
    let started = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
        let outcome = perform(&request);
        drop(letting);
        IN_FLIGHT.fetch_sub(1, Ordering::SeqCst);
        reply(&request.id(), outcome);
    });
    if let Err(error) = started {
        IN_FLIGHT.fetch_sub(1, Ordering::SeqCst);
        reply(&id, Err(Fail::io("thread", error)));
    }
}

fn perform(request: &Request) -> Result<Value, Fail> {
    match request.text("op")? {
        "fifos" => fifos::make(request),
        "hold" => hold::hold(request),
        "launch" => launch::launch(request),
        "letGo" => hold::let_go(request),
        "mount" => mount::mount(request),
        "reap" => reap::reap(request),
        other => Err(Fail::new("request", format!("unknown op {other:?}"))),
    }
}

fn reply(id: &Value, outcome: Result<Value, Fail>) {
    let message = match outcome {
        Ok(value) => json!({ "id": id, "ok": value }),
        Err(fail) => json!({ "id": id, "error": fail.to_json() }),
    };
    let line = format!("{message}\n");
    let _guard = OUT.lock();
    let mut out = std::io::stdout();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}
