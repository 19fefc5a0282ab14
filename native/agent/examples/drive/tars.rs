//! Tars, out and in.

use std::io::Write;
use std::process::{Command, Stdio};

use sandlot_frames::Kind;

use crate::bed::Images;
use crate::said::Said;
use crate::scenes::{Exec, Scene, op};

pub fn tars(images: &Images) {
    let mut scene = Scene::open(images);
    scene.sh("mkdir -p /work/src/sub/dir; cd /work/src; echo a > a; ln a hard; ln -s a soft; ln -s sub/dir way; mkfifo pipe; head -c 100000 /dev/urandom > sub/blob; chown 5:6 a; chmod 4711 sub/blob; touch -d @1000000000 sub/dir; printf x > \"$(printf 'n%.0s' $(seq 1 200))\"; printf x > sub/$'\\xff\\n'; nc -lU sock & sleep 0.2; kill %1");
    let id = scene.guest.open_stream(op("tar.out").text("world", "main").text("path", "/work/src"));
    let entries = scene.guest.outcome(id).unwrap().number("entries");
    let tar = scene.guest.data(id, 1);
    assert_eq!(tar.len() % 512, 0);
    let names = host_tar(&tar, &["-t"]);
    assert_eq!(entries, 10, "{names}");
    assert!(names.contains("sub/blob") && !names.contains("sock"), "{names}");
    let unpacked = unpack(&mut scene, "/work/copy", &tar, None).unwrap();
    assert_eq!(unpacked.number("entries"), entries);
    let hash = "find . ! -name sock | sort | while read -r f; do stat -c '%n %a %u %g %F %Y %h %s' \"$f\"; done; cat a sub/blob | md5sum; readlink soft";
    let source = scene.sh(&format!("cd /work/src; touch -d @1 .; {hash}"));
    let copy = scene.sh(&format!("cd /work/copy; touch -d @1 .; {hash}"));
    assert_eq!(source, copy);
    // One file, and a host's own tar with long names and old formats.
    let id =
        scene.guest.open_stream(op("tar.out").text("world", "main").text("path", "/work/src/a"));
    assert_eq!(scene.guest.outcome(id).unwrap().number("entries"), 1);
    assert_eq!(host_tar(&scene.guest.data(id, 1), &["-t"]), "a\n");
    for format in ["gnu", "pax", "ustar", "v7", "oldgnu"] {
        let tar = Command::new("tar")
            .args(["-C", env!("CARGO_MANIFEST_DIR"), "-c", "--format", format, "src", "examples"])
            .output()
            .unwrap();
        unpack(&mut scene, &format!("/work/{format}"), &tar.stdout, Some(9)).unwrap();
        let found = scene.sh(&format!(
            "cat /work/{format}/src/main.rs | head -1; stat -c %u /work/{format}/src/main.rs"
        ));
        assert!(found.starts_with("//! The agent") && found.ends_with("\n9"), "{found}");
    }
    hostile_tars(&mut scene);
}

fn unpack(scene: &mut Scene<'_>, path: &str, tar: &[u8], uid: Option<u64>) -> Result<Said, Said> {
    let request = op("tar.in").text("world", "main").text("path", path);
    let id =
        scene.guest.open_stream(request.optional_number("uid", uid).optional_number("gid", uid));
    scene.guest.send_data(id, 0, tar);
    if !scene.guest.is_over(id) {
        scene.guest.send(Kind::End, 0, id, &[]);
    }
    scene.guest.outcome(id)
}

fn host_tar(tar: &[u8], arguments: &[&str]) -> String {
    let mut child = Command::new("tar")
        .args(arguments)
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(tar).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the host's tar refuses it");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn entry(kind: u8, name: &str, link: &str, content: &[u8]) -> Vec<u8> {
    let mut block = [0u8; 512];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000644\x000000000\x000000000\0");
    put(124, format!("{:011o}\0", content.len()).as_bytes());
    put(136, b"00000000000\0        ");
    put(156, &[kind]);
    put(157, link.as_bytes());
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut tar = block.to_vec();
    tar.extend_from_slice(content);
    tar.resize(tar.len().next_multiple_of(512), 0);
    tar
}

fn hostile_tars(scene: &mut Scene<'_>) {
    let end = [0; 1024];
    let file = |name: &str| entry(b'0', name, "", b"evil");
    let link = |name: &str, target: &str| entry(b'2', name, target, b"");
    let over =
        |name: &str, target: &str, through: &str| [link(name, target), file(through)].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("absolute", file("/etc/motd")),
        ("dots", file("../../etc/motd")),
        ("dots inside", file("a/../../x")),
        ("device", entry(b'3', "dev", "", b"")),
        ("block device", entry(b'4', "dev", "", b"")),
        ("over an absolute link", over("l", "/etc", "l/motd")),
        ("over a climbing link", over("l", "../../etc", "l/motd")),
        ("over a climbing link in a directory", over("a/b/l", "../../../../etc", "a/b/l/motd")),
        ("over a link to a link", [link("l", "/etc"), over("m", "l", "m/motd")].concat()),
        ("over a link in a link's target", [link("l", "/etc"), over("m", "l/..", "m/x")].concat()),
        ("a directory over a link", [link("l", "/etc"), entry(b'5', "l/d", "", b"")].concat()),
        ("a link over a link", [link("l", "/etc"), link("l/m", "x")].concat()),
        ("a hard link over a link", [link("l", "/etc"), entry(b'1', "h", "l/motd", b"")].concat()),
        (
            "a hard link into a link",
            [link("l", "/etc"), file("f"), entry(b'1', "l/h", "f", b"")].concat(),
        ),
        ("hard link out", entry(b'1', "h", "/etc/motd", b"")),
        ("hard link up", entry(b'1', "h", "../../etc/motd", b"")),
        ("unknown type", entry(b'S', "s", "", b"")),
        ("empty name", file("")),
        ("cut", file("cut")[..700].to_vec()),
        ("rubbish", vec![b'x'; 2048]),
    ];
    for (number, (name, tar)) in cases.into_iter().enumerate() {
        let path = format!("/work/h{number}");
        let tar = if name == "cut" { tar } else { [&tar[..], &end].concat() };
        let error = unpack(scene, &path, &tar, None).expect_err(name);
        assert_eq!(error.code(), "invalid", "{name}: {error:?}");
    }
    // Links that are there already lead nowhere else.
    scene.sh("mkdir -p /work/t/in; ln -s /etc /work/t/out; ln -s in /work/t/way; ln -s ../.. /work/t/in/up; ln -s /work/t/in /work/t/whole; ln -s a /work/t/b; ln -s b /work/t/a");
    for name in ["out/motd", "in/up/x", "a/x", "way/up/x"] {
        let tar = [&file(name)[..], &end].concat();
        let error = unpack(scene, "/work/t", &tar, None).expect_err(name);
        assert_eq!(error.code(), "invalid", "{name}: {error:?}");
    }
    for name in ["way/good", "whole/better"] {
        unpack(scene, "/work/t", &[&file(name)[..], &end].concat(), None).unwrap();
    }
    assert_eq!(scene.sh("cat /work/t/in/good /work/t/in/better"), "evilevil");
    // Links that lead out arrive as they are, and what comes at their own names replaces them.
    let tar = [
        &link("python", "/usr/bin/python3")[..],
        &link("up", "../../../etc/motd"),
        &link("d", "/etc"),
        &entry(b'5', "d", "", b""),
        &file("d/motd"),
        &link("f", "/etc/motd"),
        &file("f"),
        &end,
    ];
    unpack(scene, "/work/venv", &tar.concat(), None).unwrap();
    let kept =
        scene.sh("cd /work/venv; readlink python; readlink up; cat d/motd f; ls -ld d | cut -c1");
    assert_eq!(kept, "/usr/bin/python3\n../../../etc/motd\nevilevild");
    // A link of the archive itself, then a file over it.
    let tar = [
        &entry(b'2', "x", "way", b"")[..],
        &file("x/through"),
        &entry(b'2', "motd", "in/good", b""),
        &file("motd"),
        &end,
    ];
    unpack(scene, "/work/t", &tar.concat(), None).unwrap();
    assert_eq!(scene.sh("cat /work/t/in/through; ls /work/t/motd; cat /etc/motd; ls -A /work/h* | grep -c evil || true"), "evil/work/t/motd\nfrom the layer\n0");
    assert_eq!(scene.run(&Exec::of(&["true"])).unwrap().code(), 0);
}

pub fn hidden_helpers(images: &Images) {
    let mut scene = Scene::open(images);
    // While a job runs, the world kills all it can and sees nothing of it.
    scene.sh("mkdir /work/many; cd /work/many; seq 1 5000 | xargs touch");
    scene.guest.granting = false;
    let id = scene.guest.open_stream(op("tar.out").text("world", "main").text("path", "/work"));
    scene.guest.until("some of it", |guest| guest.count(id, 1) == 262_144);
    let seen = scene.sh("ls /proc | grep -c '^[0-9]'");
    assert!(seen.parse::<u32>().unwrap() <= 4, "{seen}");
    let _ = scene.run(&Exec::sh("kill -9 -1")).unwrap();
    scene.guest.granting = true;
    scene.guest.grant(id, 1, 262_144);
    assert_eq!(scene.guest.outcome(id).unwrap().number("entries"), 5001);
}
