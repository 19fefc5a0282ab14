//! Output: credit, rings, detaching, many at once.

use std::time::{Duration, Instant};

use sandlot_frames::Kind;

use crate::bed::Images;
use crate::scenes::{Exec, Scene, op};

const GIB: u64 = 1 << 30;

pub fn flood_buffered(images: &Images) {
    let mut scene = Scene::open(images);
    let before = scene.bed.memory_kib();
    let started = Instant::now();
    let ran = scene
        .run(&Exec::sh("echo first; dd if=/dev/zero bs=64k count=16384 2>/dev/null; echo last"))
        .unwrap();
    let ms = started.elapsed().as_millis().max(1);
    let stdout = ran.result.get("stdout");
    assert_eq!(stdout.number("totalBytes") as u64, GIB + 11);
    assert_eq!(stdout.number("droppedBytes") as u64, GIB + 11 - (1 << 20));
    assert_eq!(ran.stdout.len(), 1 << 20);
    assert!(ran.stdout.starts_with("first\n") && ran.stdout.ends_with("last\n"));
    let grown = scene.bed.memory_kib().saturating_sub(before);
    println!("    1 GiB in {ms} ms, {} MiB/s, memory grew by {grown} KiB", 1024 * 1000 / ms);
    assert!(grown < 24 << 10, "{grown}");
}

pub fn flood_streamed(images: &Images) {
    let mut scene = Scene::open(images);
    scene.guest.keeping = false;
    let before = scene.bed.memory_kib();
    let started = Instant::now();
    let (_, id) =
        scene.start(&Exec::sh("dd if=/dev/zero bs=64k count=16384 2>/dev/null").streaming());
    let result = scene.guest.outcome(id).unwrap();
    let ms = started.elapsed().as_millis().max(1);
    assert_eq!(scene.guest.count(id, 1), GIB);
    assert_eq!(result.get("stdout").number("totalBytes") as u64, GIB);
    assert_eq!(result.get("stdout").number("droppedBytes"), 0);
    let grown = scene.bed.memory_kib().saturating_sub(before);
    println!("    1 GiB in {ms} ms, {} MiB/s, memory grew by {grown} KiB", 1024 * 1000 / ms);
    assert!(grown < 24 << 10, "{grown}");
}

pub fn a_stalled_reader_stops_only_itself(images: &Images) {
    let mut scene = Scene::open(images);
    scene.guest.granting = false;
    let (name, id) = scene.start(&Exec::sh("yes | head -c 10000000; echo done >&2").streaming());
    scene.guest.until("the first window", |guest| guest.count(id, 1) == 262_144);
    for _ in 0..5 {
        assert_eq!(scene.sh("echo ok"), "ok");
    }
    scene.guest.serve_for(Duration::from_millis(300));
    assert_eq!(scene.guest.count(id, 1), 262_144);
    assert!(!scene.guest.is_over(id));
    let listed = scene.guest.call(op("exec.list")).unwrap();
    let listed = listed.list("execs").iter().find(|exec| exec.get("exec").text() == name).unwrap();
    assert!(listed.flag("running") && listed.number("processes") >= 2, "{listed:?}");
    scene.guest.granting = true;
    scene.guest.grant(id, 1, 262_144);
    let result = scene.guest.outcome(id).unwrap();
    assert_eq!(scene.guest.count(id, 1), 10_000_000);
    assert_eq!(result.get("stdout").number("droppedBytes"), 0);
    assert_eq!(scene.guest.text(id, 2), "done\n");
}

pub fn detach_and_attach(images: &Images) {
    let mut scene = Scene::open(images);
    // Long enough that the ring turns while nobody reads.
    let script =
        "i=0; while [ $i -lt 60000 ]; do echo line $i; i=$((i+1)); done; sleep 0.5; echo end";
    let (name, id) = scene.start(&Exec { ring: Some(65_536), ..Exec::sh(script).streaming() });
    scene.guest.until("some output", |guest| guest.count(id, 1) > 10_000);
    scene.guest.send(Kind::Cancel, 0, id, &[]);
    assert_eq!(scene.guest.outcome(id).unwrap_err().code(), "cancelled");
    let got = scene.guest.data(id, 1);
    let ends = Instant::now() + crate::guest::PATIENCE;
    while scene.guest.call(op("exec.list")).unwrap().list("execs")[0].flag("running") {
        assert!(Instant::now() < ends);
        scene.guest.serve_for(Duration::from_millis(50));
    }
    let attach = |name: &str, from: usize| {
        op("exec.attach")
            .text("exec", name)
            .number("stdoutFrom", from as u64)
            .number("stderrFrom", 0)
    };
    let id = scene.guest.open_stream(attach(&name, got.len()));
    let result = scene.guest.outcome(id).unwrap();
    let rest = scene.guest.data(id, 1);
    let events = scene.guest.events(id);
    assert_eq!(events[0].get("kind").text(), "started");
    let (offset, dropped) = (events[1].number("offset"), events[1].number("droppedBytes"));
    let total = result.get("stdout").number("totalBytes");
    assert_eq!(got.len() as i64 + dropped, offset);
    assert_eq!(offset + rest.len() as i64, total);
    assert_eq!(result.get("stdout").number("droppedBytes"), dropped);
    assert!(dropped > 50_000, "{dropped}");
    assert!(rest.ends_with(b"line 59999\nend\n"));
    // Again after its end, from the start: the ring still has the newest.
    let id = scene.guest.open_stream(attach(&name, 0));
    scene.guest.outcome(id).unwrap();
    assert_eq!(scene.guest.data(id, 1).len(), 65_536);
    scene.guest.call(op("exec.forget").text("exec", &name)).unwrap();
    let gone = scene.guest.call(attach(&name, 0)).unwrap_err();
    assert_eq!(gone.code(), "exec_unknown");
}

pub fn buffered_attach(images: &Images) {
    let mut scene = Scene::open(images);
    let exec = Exec {
        head: Some(1000),
        tail: Some(500),
        ..Exec::sh("head -c 10000 /dev/zero | tr '\\0' x; echo")
    };
    let (name, id) = scene.start(&exec);
    scene.guest.outcome(id).unwrap();
    let attach = |out: u64| {
        op("exec.attach").text("exec", &name).number("stdoutFrom", out).number("stderrFrom", 0)
    };
    assert_eq!(scene.guest.data(id, 1).len(), 1500);
    let gap = scene.guest.events(id).last().unwrap();
    assert_eq!((gap.number("offset"), gap.number("droppedBytes")), (9501, 8501));
    for (from, expected) in [(0, 1500), (400, 1100), (5000, 500), (9600, 401), (99_999, 0)] {
        let id = scene.guest.open_stream(attach(from));
        let result = scene.guest.outcome(id).unwrap();
        assert_eq!(scene.guest.data(id, 1).len(), expected, "{from}");
        assert_eq!(result.get("stdout").number("droppedBytes"), 8501);
    }
}

pub fn two_hundred_at_once(images: &Images) {
    let mut scene = Scene::blank(images);
    scene.bed.mount(&images.layer, 0);
    scene.open_world(&crate::scenes::World { pids_max: 1000, ..crate::scenes::MAIN }).unwrap();
    let started = Instant::now();
    let ids: Vec<u32> = (0..200)
        .map(|number| {
            scene.start(&Exec::sh(&format!("echo {number}; sleep 1; echo {number} >&2"))).1
        })
        .collect();
    for (number, id) in ids.into_iter().enumerate() {
        assert_eq!(scene.guest.outcome(id).unwrap().number("exitCode"), 0);
        assert_eq!(scene.guest.text(id, 1), format!("{number}\n"));
        assert_eq!(scene.guest.text(id, 2), format!("{number}\n"));
    }
    println!("    200 commands of 1 s in {} ms", started.elapsed().as_millis());
    let refused = (0..300).filter(|_| {
        let (_, id) = scene.start(&Exec::sh("sleep 1000"));
        scene.guest.turn(0);
        scene.guest.serve_for(Duration::ZERO);
        id == 0
    });
    assert_eq!(refused.count(), 0);
    let ended = scene.end_world("main", 10_000);
    if ended.is_err() {
        println!("{:?}", scene.stats());
        println!("{:?}", scene.guest.call(op("exec.list")));
        println!("{:?}", scene.end_world("main", 5000));
        println!("{:?}", scene.stats());
    }
    assert_eq!(ended.unwrap().get("by").text(), "request");
}

pub fn many_short_ones(images: &Images) {
    let mut scene = Scene::open(images);
    let mut times: Vec<u128> = (0..600)
        .map(|_| {
            let started = Instant::now();
            assert_eq!(scene.run(&Exec::of(&["true"])).unwrap().code(), 0);
            started.elapsed().as_micros()
        })
        .collect();
    times.sort_unstable();
    println!("    true: p50 {} us, p99 {} us", times[300], times[594]);
    let listed = scene.guest.call(op("exec.list")).unwrap();
    assert_eq!(listed.list("execs").len(), 256);
    assert_eq!(listed.list("execs").last().unwrap().get("exec").text(), "e600");
}

pub fn rings_are_bounded(images: &Images) {
    let mut scene = Scene::open(images);
    let started: Vec<(String, u32)> =
        (0..40).map(|_| scene.start(&Exec::sh("head -c 3000000 /dev/zero; sleep 2"))).collect();
    for (_, id) in &started {
        scene.guest.until("a start", |guest| !guest.events(*id).is_empty() || guest.is_over(*id));
    }
    scene.guest.serve_for(Duration::from_millis(1000));
    let held = scene.stats().number("rings");
    println!("    40 floods hold {held} bytes");
    assert!(held <= 9 << 20, "{held}");
    for (_, id) in started {
        let result = scene.guest.outcome(id).unwrap();
        let stdout = result.get("stdout").clone();
        let kept = scene.guest.data(id, 1).len() as i64;
        assert_eq!(stdout.number("totalBytes"), 3_000_000);
        assert_eq!(stdout.number("totalBytes"), kept + stdout.number("droppedBytes"));
        assert!(kept >= 16_384);
    }
}

/// What the runtime itself gives, beside what a command's output gets through the agent.
pub fn raw_throughput(images: &Images) {
    let mut scene = Scene::open(images);
    scene.guest.keeping = false;
    let flood = "dd if=/dev/zero bs=64k count=4096 2>/dev/null";
    let rate = |time: Duration| 256_000 / time.as_millis().max(1);
    for _ in 0..3 {
        let started = Instant::now();
        scene.sh(&format!("{flood} | dd of=/dev/null bs=64k 2>/dev/null"));
        let pipe = started.elapsed();
        let started = Instant::now();
        let (_, id) = scene.start(&Exec::sh(flood).streaming());
        scene.guest.outcome(id).unwrap();
        let streamed = started.elapsed();
        let started = Instant::now();
        scene.run(&Exec::sh(flood)).unwrap();
        let buffered = started.elapsed();
        println!(
            "    MiB/s: pipe inside {}, streamed {}, buffered {}",
            rate(pipe),
            rate(streamed),
            rate(buffered)
        );
    }
}
