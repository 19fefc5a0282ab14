//! Files.

use std::io::Write;
use std::time::Instant;

use sandlot_frames::Kind;

use crate::bed::Images;
use crate::said::Said;
use crate::scenes::{Scene, op};

pub fn files(images: &Images) {
    let mut scene = Scene::open(images);
    scene.write("/work/deep/er/file", b"content").unwrap();
    assert_eq!(scene.sh("cat /work/deep/er/file; stat -c %a /work/deep/er/file"), "content644");
    assert_eq!(scene.read("/etc/motd").unwrap(), b"from the layer\n");
    assert_eq!(scene.read("/none").unwrap_err().code(), "not_found");
    assert_eq!(scene.read("/etc").unwrap_err().code(), "is_directory");
    scene.sh("mkfifo /work/fifo; ln -s /etc/motd /work/link; ln -s /work/loop /work/loop");
    for path in ["/work/fifo", "/dev/null", "/dev/zero", "/dev/tty"] {
        assert_eq!(scene.read(path).unwrap_err().code(), "not_file", "{path}");
        assert_eq!(scene.write(path, b"x").unwrap_err().code(), "not_file", "{path}");
    }
    assert_eq!(scene.read("/work/link").unwrap(), b"from the layer\n");
    assert_eq!(scene.read("/work/loop").unwrap_err().code(), "invalid");
    assert_eq!(scene.read("/etc/motd/x").unwrap_err().code(), "not_directory");
    assert_eq!(scene.read("").unwrap_err().code(), "invalid");
    assert_eq!(scene.read(&"x/".repeat(3000)).unwrap_err().code(), "invalid");
    assert_eq!(scene.read("/proc/meminfo").unwrap()[..9], *b"MemTotal:");
    assert!(!scene.read("/proc/version").unwrap().is_empty());
    let refused = scene.write("/proc/sys/kernel/hostname", b"x").unwrap_err().code();
    assert!(["permission", "unsupported"].contains(&refused.as_str()), "{refused}");
    stat_and_change(&mut scene);
    ranges(&mut scene);
    modes(&mut scene);
    lists(&mut scene);
}

fn stat_and_change(scene: &mut Scene<'_>) {
    let stat = scene.file("file.stat", "/work/link", |map| map.flag("follow", false)).unwrap();
    assert_eq!(stat.get("kind").text(), "symlink");
    assert_eq!(stat.get("target").text(), "/etc/motd");
    let stat = scene.file("file.stat", "/work/link", |map| map.flag("follow", true)).unwrap();
    assert_eq!((stat.get("kind").text().as_str(), stat.number("sizeBytes")), ("file", 15));
    assert!(stat.number("mtimeMs") >= 0 && stat.number("uid") == 0);
    let make = |scene: &mut Scene<'_>, path: &str, parents: bool| {
        scene.file("file.makeDirectory", path, |map| {
            map.flag("parents", parents).number("mode", 0o750)
        })
    };
    make(scene, "/work/d/e/f", true).unwrap();
    make(scene, "/work/d/e/f/", true).unwrap();
    assert_eq!(make(scene, "/work/d/e/f", false).unwrap_err().code(), "exists");
    assert_eq!(make(scene, "/work/x/y", false).unwrap_err().code(), "not_found");
    assert_eq!(scene.sh("stat -c %a /work/d/e/f /work/d/e"), "750\n755");
    scene.file("file.chmod", "/work/d/e/f", |map| map.number("mode", 0o700)).unwrap();
    assert_eq!(scene.sh("stat -c %a /work/d/e/f"), "700");
    let rename =
        op("file.rename").text("world", "main").text("from", "/work/d/e/f").text("to", "/work/g");
    scene.guest.call(rename).unwrap();
    let remove = |scene: &mut Scene<'_>, path: &str, recursive: bool, force: bool| {
        scene.file("file.remove", path, |map| map.flag("recursive", recursive).flag("force", force))
    };
    assert_eq!(remove(scene, "/work/d", false, false).unwrap_err().code(), "not_empty");
    remove(scene, "/work/d", true, false).unwrap();
    remove(scene, "/work/g", false, false).unwrap();
    assert_eq!(remove(scene, "/work/g", false, false).unwrap_err().code(), "not_found");
    remove(scene, "/work/g", false, true).unwrap();
    remove(scene, "/work/g", true, true).unwrap();
    scene.sh("mkdir -p /work/t/a; ln -s /etc /work/t/a/etc; ln /work/deep/er/file /work/t/h; mkfifo /work/t/p");
    remove(scene, "/work/t", true, false).unwrap();
    assert_eq!(scene.sh("cat /etc/motd /work/deep/er/file"), "from the layer\ncontent");
    scene.sh("mkdir /work/deepest; cd /work/deepest; i=0; while [ $i -lt 1500 ]; do mkdir d && cd d; i=$((i+1)); done");
    remove(scene, "/work/deepest", true, false).unwrap();
    assert_eq!(scene.sh("ls -d /work/deepest 2>/dev/null || echo gone"), "gone");
    let error = remove(scene, "/proc", true, false).unwrap_err();
    assert!(["permission", "io", "not_empty"].contains(&error.code().as_str()), "{error:?}");
}

fn ranges(scene: &mut Scene<'_>) {
    for (offset, length, expected) in [(5, 3, "the"), (0, 0, ""), (10, 99, "ayer\n"), (99, 5, "")] {
        let request = op("file.read").text("world", "main").text("path", "/etc/motd");
        let id = scene.guest.open_stream(request.number("offset", offset).number("length", length));
        let result = scene.guest.outcome(id).unwrap();
        assert_eq!(scene.guest.text(id, 1), expected);
        assert_eq!(result.number("sizeBytes"), expected.len() as i64);
        assert_eq!(scene.guest.events(id)[0].number("sizeBytes"), 15);
    }
    let request = op("file.read").text("world", "main").text("path", "/proc/meminfo");
    let id = scene.guest.open_stream(request.number("length", 9));
    assert_eq!(scene.guest.outcome(id).unwrap().number("sizeBytes"), 9);
}

fn modes(scene: &mut Scene<'_>) {
    let mut write =
        |path: &str, append: bool, exclusive: bool, mode: u64, uid: u64| -> Result<Said, Said> {
            let request =
                op("file.write").text("world", "main").text("path", path).flag("parents", false);
            let request = request.flag("append", append).flag("exclusive", exclusive);
            let request = request.number("mode", mode).number("uid", uid).number("gid", uid);
            let id = scene.guest.open_stream(request);
            scene.guest.send_data(id, 0, b"abc");
            scene.guest.send(Kind::End, 0, id, &[]);
            scene.guest.outcome(id)
        };
    write("/work/m", false, true, 0o4640, 7).unwrap();
    assert_eq!(write("/work/m", false, true, 0o600, 7).unwrap_err().code(), "exists");
    write("/work/m", true, false, 0o4640, 7).unwrap();
    assert_eq!(write("/no/m", true, false, 0o640, 7).unwrap_err().code(), "not_found");
    assert_eq!(write("/etc", false, false, 0o640, 7).unwrap_err().code(), "is_directory");
    assert_eq!(scene.sh("cat /work/m; stat -c ' %a %u %g' /work/m"), "abcabc 4640 7 7");
    // Cancelled in the middle: what came stays.
    let id = scene.open_write("/work/half");
    scene.guest.send_data(id, 0, b"half");
    scene.guest.send(Kind::Cancel, 0, id, &[]);
    assert_eq!(scene.guest.outcome(id).unwrap_err().code(), "cancelled");
}

fn lists(scene: &mut Scene<'_>) {
    scene.sh("mkdir /work/many; cd /work/many; seq 1 3000 | xargs touch");
    let id =
        scene.guest.open_stream(op("file.list").text("world", "main").text("path", "/work/many"));
    let result = scene.guest.outcome(id).unwrap();
    assert_eq!(result.number("count"), 3000);
    let bytes = scene.guest.data(id, 1);
    assert_eq!(bytes.windows(9).filter(|window| window.ends_with(b"mtimeMs")).count(), 3000);
    let list = |path: &str| op("file.list").text("world", "main").text("path", path);
    assert_eq!(scene.guest.call(list("/etc/motd")).unwrap_err().code(), "not_directory");
    assert_eq!(scene.guest.call(list("/none")).unwrap_err().code(), "not_found");
    // A reader that stops in the middle leaves nothing behind.
    scene.guest.granting = false;
    for _ in 0..40 {
        let id = scene.guest.open_stream(list("/work/many"));
        scene.guest.until("some of it", |guest| guest.count(id, 1) > 0);
        scene.guest.send(Kind::Cancel, 0, id, &[]);
        let _ = scene.guest.outcome(id);
    }
    scene.guest.granting = true;
    assert_eq!(scene.guest.call(list("/work/many")).unwrap().number("count"), 3000);
}

pub fn one_gibibyte(images: &Images) {
    let mut scene = Scene::blank(images);
    scene.bed.mount(&images.layer, 0);
    scene
        .open_world(&crate::scenes::World { upper_bytes: 1200 << 20, ..crate::scenes::MAIN })
        .unwrap();
    let chunk: Vec<u8> = (0..1 << 20).map(|at: u32| (at / 7) as u8).collect();
    let started = Instant::now();
    let id = scene.open_write("/work/big");
    for _ in 0..1024 {
        scene.guest.send_data(id, 0, &chunk);
    }
    scene.guest.send(Kind::End, 0, id, &[]);
    assert_eq!(scene.guest.outcome(id).unwrap().number("sizeBytes"), 1 << 30);
    let up = started.elapsed().as_millis();
    let held = scene.bed.memory_kib();
    scene.guest.keeping = false;
    let started = Instant::now();
    let request = op("file.read").text("world", "main").text("path", "/work/big");
    let id = scene.guest.open_stream(request);
    assert_eq!(scene.guest.outcome(id).unwrap().number("sizeBytes"), 1 << 30);
    assert_eq!(scene.guest.count(id, 1), 1 << 30);
    let down = started.elapsed().as_millis();
    println!("    up {} MiB/s, down {} MiB/s", 1024 * 1000 / up, 1024 * 1000 / down);
    let grown = scene.bed.memory_kib().saturating_sub(held);
    assert!(grown < 16 << 10, "reading grew memory by {grown} KiB");
    assert!(held < (1 << 20) + (60 << 10), "writing holds {held} KiB");
}
