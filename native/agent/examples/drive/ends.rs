//! Deadlines, kills, worlds that end, and the agent's own end.

use std::time::{Duration, Instant};

use crate::bed::Images;
use crate::guest::{Guest, PATIENCE};
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

pub fn what_is_left_behind(images: &Images) {
    let mut scene = Scene::open(images);
    let script = "(while true; do echo noise; done) & setsid sleep 1000 & echo started";
    let (name, id) = scene.start(&Exec::sh(script));
    let result = scene.guest.outcome(id).unwrap();
    assert_eq!(result.number("left"), 2, "{result:?}");
    assert!(scene.guest.text(id, 1).contains("started\n"));
    scene.guest.serve_for(Duration::from_millis(300));
    assert_eq!(scene.sh("echo ok"), "ok");
    let list = scene.guest.call(op("process.list").text("world", "main")).unwrap();
    let processes = list.list("processes");
    assert_eq!(processes.len(), 2, "{list:?}");
    assert!(processes.iter().all(|process| process.get("exec").text() == name));
    assert!(processes.iter().any(|process| process.get("command").text() == "sleep 1000"));
    assert_eq!(scene.kill(&name, 9).unwrap().number("processes"), 2);
    assert_eq!(scene.kill(&name, 9).unwrap().number("processes"), 0);
    assert_eq!(scene.kill("other", 9).unwrap_err().code(), "exec_unknown");
    // Closed output, and a pipe that a daemon keeps open.
    let ran = scene.run(&Exec::sh("exec >&- 2>&-; sleep 0.1; exit 3")).unwrap();
    assert_eq!(ran.code(), 3);
}

pub fn signals(images: &Images) {
    let mut scene = Scene::open(images);
    let script = "trap 'echo got; exit 5' USR1; echo ready; while true; do sleep 0.05; done";
    let (name, id) = scene.start(&Exec::sh(script).streaming());
    scene.guest.until("ready", |guest| guest.count(id, 1) == 6);
    assert!(scene.kill(&name, 10).unwrap().number("processes") >= 1);
    let result = scene.guest.outcome(id).unwrap();
    assert!(result.get("signal").is_nothing() && result.number("exitCode") == 5, "{result:?}");
    assert!(!result.flag("killed"));
    assert_eq!(scene.kill(&name, 0).unwrap_err().code(), "invalid");
    // Killed before it was said to have started.
    let (name, id) = scene.start(&Exec::sh("sleep 1000"));
    scene.kill(&name, 9).unwrap();
    let result = scene.guest.outcome(id).unwrap();
    assert!(result.flag("killed") && result.number("signal") == 9, "{result:?}");
}

pub fn grade_world(images: &Images) {
    let mut scene = Scene::open(images);
    scene.sh("echo answer > /work/answer; rm /etc/motd; mkdir -p /a/b; mv /usr/bin /usr/other; echo t > /tmp/t; chmod 600 /etc/group");
    let hash = "find / -xdev ! -path /proc ! -path /sys ! -path /dev ! -path '/etc/hosts' | sort | while read f; do stat -c '%n %a %u %g %F' \"$f\"; done | md5sum";
    let before = scene.sh(hash);
    let (_, left) = scene.start(&Exec::sh("setsid sleep 1000 & sleep 1000"));
    let refused = scene.open_world(&World { name: "grade", below: Some("main"), ..MAIN });
    assert_eq!(refused.unwrap_err().code(), "not_empty");
    scene.guest.call(op("world.prepare").text("world", "grade")).unwrap();
    let ended = scene.end_world("main", 5000).unwrap();
    println!("    world.end {} us inside", ended.number("elapsedUs"));
    assert_eq!(scene.guest.outcome(left).unwrap().number("signal"), 9);
    assert_eq!(scene.run(&Exec::of(&["true"])).unwrap_err().code(), "world_not_open");
    assert_eq!(scene.end_world("main", 5000).unwrap().get("by").text(), "request");
    let opened = scene.open_world(&World { name: "grade", below: Some("main"), ..MAIN }).unwrap();
    println!("    world.open of grade {} us inside", opened.number("elapsedUs"));
    let grade = |scene: &mut Scene<'_>, script: &str| {
        scene.run(&Exec::sh(script).in_world("grade")).unwrap().stdout.trim_end().to_string()
    };
    assert_eq!(
        grade(&mut scene, "cat /work/answer; ls /etc/motd 2>&1; ls /usr; cat /tmp/t"),
        "answer\nls: /etc/motd: No such file or directory\nother\nt"
    );
    assert_eq!(grade(&mut scene, hash), before);
    grade(&mut scene, "echo changed > /work/answer; rm -r /a");
    assert_eq!(scene.end_world("grade", 5000).unwrap().get("by").text(), "request");
    scene.open_world(&World { name: "again", below: Some("main"), ..MAIN }).unwrap();
    let ran = scene.run(&Exec::sh("cat /work/answer; ls -d /a/b").in_world("again")).unwrap();
    assert_eq!(ran.stdout, "answer\n/a/b\n");
    assert_eq!(scene.end_world("nothere", 1).unwrap_err().code(), "world_unknown");
}

pub fn a_world_that_kills_its_init(images: &Images) {
    let mut scene = Scene::open(images);
    let watch = scene.guest.open_stream(op("watch"));
    for signal in ["TERM", "INT", "HUP", "STOP", "SEGV", "USR1"] {
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

pub fn ending_while_starting(images: &Images) {
    let mut scene = Scene::blank(images);
    scene.bed.mount(&images.layer, 0);
    for name in ["main", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"] {
        scene.open_world(&World { name, pids_max: 1000, ..MAIN }).unwrap();
        let ids: Vec<u32> = (0..60)
            .map(|_| scene.start(&Exec::sh("sleep 1000 & sleep 1000").in_world(name)).1)
            .collect();
        scene.guest.serve_for(Duration::from_millis(name.as_bytes()[0] as u64 % 7 * 20));
        let ended = scene.end_world(name, 10_000);
        if ended.is_err() {
            println!("{:?}", scene.stats());
            println!("{:?}", scene.end_world(name, 3000));
            println!("{:?}", scene.stats());
        }
        assert_eq!(ended.unwrap().get("by").text(), "request");
        for id in ids {
            let code = match scene.guest.outcome(id) {
                Ok(result) => format!("{}", result.number("signal")),
                Err(error) => format!("{} {error:?}", error.code()),
            };
            assert!(code == "9" || code.starts_with("world_not_open"), "{code}");
        }
    }
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

pub fn a_world_ends_under_its_writers(images: &Images) {
    let mut scene = Scene::open(images);
    let writing = scene.open_write("/work/f");
    scene.guest.send_data(writing, 0, b"begun");
    let unpacking =
        scene.guest.open_stream(op("tar.in").text("world", "main").text("path", "/work/t"));
    scene.guest.send_data(unpacking, 0, &[0; 100]);
    scene.guest.serve_for(Duration::from_millis(200));
    let ended = scene.end_world("main", 5000).unwrap();
    println!("    world.end {} us inside", ended.number("elapsedUs"));
    for id in [writing, unpacking] {
        assert_eq!(scene.guest.outcome(id).unwrap_err().code(), "world_not_open");
    }
    assert_eq!(scene.read("/work/f").unwrap(), b"begun");
    assert_eq!(scene.write("/work/g", b"x").unwrap_err().code(), "world_not_open");
    let stat = scene.file("file.stat", "/work/f", |map| map.flag("follow", true)).unwrap();
    assert_eq!(stat.number("sizeBytes"), 5);
    let id = scene.guest.open_stream(op("tar.out").text("world", "main").text("path", "/work"));
    assert!(scene.guest.outcome(id).unwrap().number("entries") >= 1);
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
