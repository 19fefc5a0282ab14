//! What episodes do, and what must happen.

use std::time::{Duration, Instant};

use crate::bed::Images;
use crate::guest::PATIENCE;
use crate::scenes::{Exec, MAIN, Scene, World, op};

pub fn deadlines(images: &Images) {
    let mut scene = Scene::open(images);
    for script in [
        "echo partial; sleep 1000",
        "echo partial; trap '' TERM INT HUP; while true; do sleep 1000; done",
        "echo partial; while true; do :; done",
        "echo partial; kill -STOP $$; sleep 1000",
        "echo partial; setsid sleep 1000 & nohup sleep 1000 & (sleep 1000 &) ; sleep 1000",
    ] {
        let started = Instant::now();
        let ran = scene.run(&Exec::sh(script).timeout_ms(300)).unwrap();
        assert!(ran.result.flag("timedOut") && ran.result.flag("killed"), "{script}: {ran:?}");
        assert_eq!(ran.result.number("signal"), 9);
        assert_eq!(ran.stdout, "partial\n", "{script}");
        assert!(started.elapsed() < Duration::from_secs(3), "{script}: {:?}", started.elapsed());
        let seen = scene.sh("ls /proc | grep -c '^[0-9]'");
        assert!(seen.parse::<u32>().unwrap() <= 4, "{script}: {seen}");
    }
}

pub fn a_world_that_kills_its_init(images: &Images) {
    let mut scene = Scene::open(images);
    let watch = scene.guest.open_stream(op("watch"));
    for signal in ["TERM", "INT", "HUP", "STOP", "SEGV", "USR1", "32", "64"] {
        scene.sh(&format!("kill -{signal} 1; sleep 0.05"));
    }
    scene.sh("echo mine > /work/file");
    let (_, id) = scene.start(&Exec::sh("sleep 1000"));
    let ran = scene.run(&Exec::sh("kill -9 1; sleep 10")).unwrap();
    assert_eq!(ran.result.number("signal"), 9);
    assert_eq!(scene.guest.outcome(id).unwrap().number("signal"), 9);
    scene.guest.until("the news", |guest| !guest.events(watch).is_empty());
    let news = scene.guest.events(watch)[0].clone();
    assert_eq!(
        (news.get("kind").text().as_str(), news.get("by").text().as_str()),
        ("world_ended", "episode")
    );
    assert_eq!(scene.end_world("main", 5000).unwrap().get("by").text(), "episode");
    assert_eq!(scene.run(&Exec::of(&["true"])).unwrap_err().code(), "world_not_open");
    scene.open_world(&World { name: "grade", below: Some("main"), ..MAIN }).unwrap();
    let ran = scene.run(&Exec::sh("cat /work/file").in_world("grade")).unwrap();
    assert_eq!(ran.stdout, "mine\n");
}

pub fn destruction(images: &Images) {
    let mut scene = Scene::open(images);
    let (_, other) = scene.start(&Exec::sh("sleep 1000"));
    scene.guest.until("its start", |guest| !guest.events(other).is_empty());
    let ran = scene.run(&Exec::sh("kill -9 -1; echo alive; kill -9 $$")).unwrap();
    assert_eq!(ran.result.number("signal"), 9, "{ran:?}");
    assert_eq!(scene.guest.outcome(other).unwrap().number("signal"), 9);
    assert_eq!(scene.sh("echo still"), "still");
    scene.run(&Exec::sh("rm -rf / --no-preserve-root; busybox rm -rf /*")).unwrap();
    assert_eq!(scene.run(&Exec::of(&["ls"])).unwrap_err().code(), "not_found");
    scene.write("/work/after", b"files still work").unwrap();
    assert_eq!(scene.read("/work/after").unwrap(), b"files still work");
    assert_eq!(scene.end_world("main", 5000).unwrap().get("by").text(), "request");
    scene.open_world(&World { name: "fresh", ..MAIN }).unwrap();
    let ran = scene.run(&Exec::sh("cat /etc/motd").in_world("fresh")).unwrap();
    assert_eq!(ran.stdout, "from the layer\n");
}

pub fn fork_bomb(images: &Images) {
    let mut scene = Scene::open(images);
    let watch = scene.guest.open_stream(op("watch"));
    // Strays of the bomb outlive the shell that threw it.
    let bomb = "b() { b | b & sleep 1000; }; b; b; b; wait";
    let (name, id) = scene.start(&Exec::sh(bomb));
    scene.guest.serve_for(Duration::from_millis(1500));
    scene.guest.until("the flag", |guest| !guest.events(watch).is_empty());
    let flag = scene.guest.events(watch)[0].clone();
    assert_eq!(flag.get("flag").text(), "pids");
    let stats = scene.stats().list("worlds")[0].clone();
    assert!(stats.number("processes") <= 100 && stats.number("pidsPeak") <= 100, "{stats:?}");
    assert!(stats.number("pidsRefused") > 0);
    let started = Instant::now();
    scene.kill(&name, 9).unwrap();
    scene.guest.outcome(id).unwrap();
    println!("    killed in {} ms", started.elapsed().as_millis());
    let until = Instant::now() + PATIENCE;
    while scene.stats().list("worlds")[0].number("processes") > 0 {
        assert!(Instant::now() < until);
    }
    assert_eq!(scene.sh("echo ok"), "ok");
    let bomb_as_ann = Exec { user: Some("ann"), ..Exec::sh(bomb) }.timeout_ms(500);
    assert!(scene.run(&bomb_as_ann).unwrap().result.flag("timedOut"));
    assert_eq!(scene.sh("echo ok"), "ok");
    assert_eq!(scene.end_world("main", 5000).unwrap().get("by").text(), "request");
}

pub fn threads(images: &Images) {
    let mut scene = Scene::open(images);
    let script = "for i in $(seq 1 300); do sleep 1000 & done 2>/dev/null; wait";
    let (name, id) = scene.start(&Exec::sh(script).timeout_ms(1500));
    let result = scene.guest.outcome(id).unwrap();
    let left = result.number("left");
    assert!((90..=99).contains(&left), "{result:?}");
    let full: Vec<u32> =
        (left..100).map(|_| scene.start(&Exec::of(&["sleep", "1000"])).1).collect();
    assert_eq!(scene.run(&Exec::of(&["true"])).unwrap_err().code(), "limit");
    scene.kill(&name, 9).unwrap();
    let stats = scene.stats().list("worlds")[0].clone();
    assert!(stats.number("pidsRefused") > 0 && stats.number("pidsPeak") <= 100, "{stats:?}");
    assert_eq!(scene.sh("echo ok"), "ok");
    assert!(!full.iter().any(|id| scene.guest.is_over(*id)));
}

pub fn full_disk(images: &Images) {
    let mut scene = Scene::blank(images);
    scene.bed.mount(&images.layer, 0);
    let small = World { upper_bytes: 16 << 20, upper_inodes: 500, ..MAIN };
    scene.open_world(&small).unwrap();
    let watch = scene.guest.open_stream(op("watch"));
    let ran = scene.run(&Exec::sh("cat /dev/zero > /work/big")).unwrap();
    assert!(ran.stderr.contains("No space left"), "{ran:?}");
    scene.guest.until("the flag", |guest| !guest.events(watch).is_empty());
    assert_eq!(scene.guest.events(watch)[0].get("flag").text(), "disk");
    let stats = scene.stats().list("worlds")[0].clone();
    assert!(stats.number("upperUsedBytes") > 15 << 20, "{stats:?}");
    assert_eq!(scene.write("/work/more", &[1; 100_000]).unwrap_err().code(), "no_space");
    scene.sh("rm /work/big");
    let ran = scene.run(&Exec::sh("i=0; while : > /work/f$i; do i=$((i+1)); done")).unwrap();
    assert!(ran.stderr.contains("No space left"), "{ran:?}");
    let stats = scene.stats().list("worlds")[0].clone();
    assert_eq!(stats.number("upperInodesTotal"), 500);
    assert!(stats.number("upperInodesUsed") >= 499, "{stats:?}");
    scene.sh("rm /work/f*; echo ok > /work/ok");
    let ran = scene.run(&Exec::sh("cat /dev/zero > /dev/shm/x")).unwrap();
    assert!(ran.stderr.contains("No space left"), "{ran:?}");
}

pub fn a_world_that_stops_and_kills_all_it_sees(images: &Images) {
    let mut scene = Scene::open(images);
    let (_, id) = scene.start(&Exec::sh("trap '' TERM; while true; do kill -STOP -1; done"));
    scene.guest.until("its start", |guest| !guest.events(id).is_empty());
    for _ in 0..20 {
        let ran = scene.run(&Exec::of(&["true"]).timeout_ms(300)).unwrap();
        assert!(ran.result.flag("timedOut") || ran.code() == 0, "{ran:?}");
    }
    let (_, killer) = scene.start(&Exec::sh("while true; do kill -9 -1; done").timeout_ms(2000));
    scene.guest.until("its start", |guest| !guest.events(killer).is_empty());
    for _ in 0..20 {
        let _ = scene.run(&Exec::of(&["true"]).timeout_ms(300)).unwrap();
    }
    scene.write("/work/f", b"x").unwrap();
    assert_eq!(scene.end_world("main", 5000).unwrap().get("by").text(), "request");
}

pub fn big_requests(images: &Images) {
    let mut scene = Scene::open(images);
    let long = "x".repeat(63_000);
    let ran =
        scene.run(&Exec { env: vec![("PATH", "/bin"), ("A", &long)], ..Exec::sh("echo ${#A}") });
    assert_eq!(ran.unwrap().stdout, "63000\n");
    let ids: Vec<u32> = (0..60)
        .map(|_| scene.start(&Exec { env: vec![("A", &long)], ..Exec::of(&["/bin/true"]) }).1)
        .collect();
    for id in ids {
        assert_eq!(scene.guest.outcome(id).unwrap().number("exitCode"), 0);
    }
    let layers = op("world.open").text("world", "other").array("layers", 1, |out| {
        crate::pack::bytes(out, b"/img/7");
    });
    let layers =
        layers.number("upperBytes", 1 << 20).number("upperInodes", 100).number("shmBytes", 4096);
    let layers = layers.number("pidsMax", 9).number("nofileMax", 99).text("hostname", "h");
    assert_eq!(scene.guest.call(layers).unwrap_err().code(), "not_found");
    for name in ["", "UPPER", "a/b", "waytoolongforaworld", "a1"] {
        assert_eq!(
            scene.guest.call(op("world.prepare").text("world", name)).unwrap_err().code(),
            "invalid"
        );
    }
    assert_eq!(scene.guest.call(op("nonsense")).unwrap_err().code(), "unsupported");
    assert_eq!(scene.guest.call(crate::pack::map()).unwrap_err().code(), "invalid");
}
