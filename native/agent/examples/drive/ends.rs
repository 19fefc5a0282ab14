//! What is left behind, signals, worlds that end.

use std::time::Duration;

use crate::bed::Images;
use crate::scenes::{Exec, MAIN, Scene, World, op};

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
