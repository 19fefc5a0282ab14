//! Daemons that go and come, and the agent's own end.

use std::time::{Duration, Instant};

use crate::bed::Images;
use crate::guest::{Guest, PATIENCE};
use crate::scenes::{Exec, Scene, op};

pub fn detached_agent_ends(images: &Images) {
    let mut scene = Scene::open(images);
    scene.guest.call(op("configure").text("sandbox", "sb_x").number("detachedMs", 3000)).unwrap();
    let (name, _) =
        scene.start(&Exec::sh("while true; do echo noise; sleep 0.01; done").streaming());
    scene.bed.let_go();
    let Scene { guest, mut bed, .. } = scene;
    drop(guest);
    std::thread::sleep(Duration::from_millis(1500));
    assert!(bed.alive(), "it ended too early");
    let mut guest = Guest::attach(&bed, false);
    assert_eq!(guest.hello.get("sandbox").text(), "sb_x");
    assert_eq!(guest.hello.list("execs")[0].get("exec").text(), name);
    guest.call(op("stats")).unwrap();
    drop(guest);
    bed.let_go();
    let started = Instant::now();
    while bed.alive() {
        assert!(started.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("    ended {} ms after its peer", started.elapsed().as_millis());
    assert!(started.elapsed() > Duration::from_millis(2800), "{:?}", started.elapsed());
}

pub fn lifetime(images: &Images) {
    let mut scene = Scene::open(images);
    let configure = op("configure").text("sandbox", "sb_x").number("detachedMs", 3000);
    let started = Instant::now();
    scene.guest.call(configure.number("lifetimeMs", 700)).unwrap();
    while scene.bed.alive() {
        assert!(started.elapsed() < PATIENCE);
        scene.guest.turn(20);
    }
    assert!(started.elapsed() >= Duration::from_millis(700));
    println!("    ended after {} ms", started.elapsed().as_millis());
}

pub fn a_new_peer_is_noticed(images: &Images) {
    let mut scene = Scene::open(images);
    scene.guest.call(op("configure").text("sandbox", "sb_x").number("detachedMs", 60_000)).unwrap();
    scene.bed.let_go();
    let Scene { guest, bed, .. } = scene;
    drop(guest);
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(4000));
        let before = bed.cpu_ms();
        std::thread::sleep(Duration::from_millis(2000));
        let spent = bed.cpu_ms() - before;
        let started = Instant::now();
        let guest = Guest::attach(&bed, false);
        println!(
            "    noticed after {} ms; 2 s detached cost {spent} ms",
            started.elapsed().as_millis()
        );
        assert!(started.elapsed() < Duration::from_millis(2500));
        assert!(spent < 60, "{spent}");
        drop(guest);
    }
}

pub fn a_silent_daemon_then_another(images: &Images) {
    let mut scene = Scene::open(images);
    let (name, id) = scene.start(&Exec::sh("while true; do echo x; sleep 0.01; done").streaming());
    scene.guest.until("output", |guest| guest.count(id, 1) > 0);
    // The first one dies in the middle of a frame.
    scene.guest.send_raw(&[0xA7, 0x11, 0, 0, 9, 0, 0, 0, 0, 0, 1, 0, 1, 2, 3]);
    scene.guest.until("all written", |guest| guest.unsent() == 0);
    scene.guest = Guest::attach(&scene.bed, false);
    let hello = scene.guest.hello.clone();
    assert_eq!(hello.list("execs")[0].get("exec").text(), name);
    assert!(hello.list("execs")[0].flag("running"));
    let request =
        op("exec.attach").text("exec", &name).number("stdoutFrom", 0).number("stderrFrom", 0);
    let id = scene.guest.open_stream(request);
    scene.guest.until("output again", |guest| guest.count(id, 1) > 10);
    scene.kill(&name, 9).unwrap();
    assert!(scene.guest.outcome(id).unwrap().flag("killed"));
}
