use sandlot_frames::Kind;

use crate::bed::Images;
use crate::scenes::{Exec, MAIN, Scene, op};

pub fn first_command(images: &Images) {
    let mut scene = Scene::blank(images);
    assert_eq!(scene.guest.hello.number("protocol"), 1);
    assert_eq!(scene.guest.hello.list("worlds")[0].get("state").text(), "prepared");
    assert_eq!(scene.run(&Exec::of(&["true"])).unwrap_err().code(), "world_not_open");
    scene.bed.mount(&images.layer, 0);
    std::thread::sleep(std::time::Duration::from_millis(100));
    let opened = scene.open_world(&MAIN).unwrap();
    println!("    world.open {} us inside", opened.number("elapsedUs"));
    assert_eq!(scene.run(&Exec::of(&["true"])).unwrap().code(), 0);
    assert_eq!(scene.run(&Exec::of(&["false"])).unwrap().code(), 1);
    assert_eq!(scene.sh("echo hello; cat /etc/motd"), "hello\nfrom the layer");
    assert_eq!(scene.open_world(&MAIN).unwrap_err().code(), "exists");
    println!("    memory {} KiB", scene.bed.memory_kib());
}

pub fn command_line(images: &Images) {
    let mut scene = Scene::open(images);
    assert_eq!(scene.sh("id -u; id -g; pwd; hostname; umask"), "0\n0\n/\nbox\n0022");
    let as_ann = Exec { user: Some("ann"), cwd: "/tmp", ..Exec::sh("id -u; id -g; id -G; pwd") };
    assert_eq!(scene.run(&as_ann).unwrap().stdout, "1000\n1001\n1001 50\n/tmp\n");
    let by_number = Exec { user: Some("5:6"), ..Exec::sh("id -u; id -G") };
    assert_eq!(scene.run(&by_number).unwrap().stdout, "5\n6\n");
    let ran = scene.run(&Exec { user: Some("nobody"), ..Exec::sh("true") });
    assert_eq!(ran.unwrap_err().code(), "invalid");
    let env = Exec { env: vec![("A", "b c"), ("PATH", "/nowhere:/bin")], ..Exec::of(&["env"]) };
    assert_eq!(scene.run(&env).unwrap().stdout, "A=b c\nPATH=/nowhere:/bin\n");
    assert_eq!(scene.run(&Exec::of(&["nothing-like-it"])).unwrap_err().code(), "not_found");
    assert_eq!(scene.run(&Exec::of(&["/etc/motd"])).unwrap_err().code(), "permission");
    assert_eq!(scene.run(&Exec::of(&["/etc"])).unwrap_err().code(), "permission");
    assert_eq!(scene.run(&Exec::of(&[])).unwrap_err().code(), "invalid");
    let ran = scene.run(&Exec { cwd: "/none", ..Exec::of(&["true"]) });
    assert_eq!(ran.unwrap_err().code(), "not_found");
    sh_mode(&mut scene);
    let ran = scene.run(&Exec::of(&["bare", "x y"])).unwrap();
    assert_eq!(ran.stdout, "bare x y\n");
    let ran = scene.run(&Exec { argv: vec![b"printf", b"\xff\x00"], ..Exec::sh("") }).unwrap_err();
    assert_eq!(ran.code(), "invalid");
    let ran = scene.run(&Exec::sh("echo out; echo err >&2; exit 7")).unwrap();
    assert_eq!((ran.code(), &ran.stdout[..], &ran.stderr[..]), (7, "out\n", "err\n"));
    let ran = scene.run(&Exec::sh("kill -SEGV $$")).unwrap();
    assert_eq!(ran.result.number("signal"), 11);
    assert_eq!(ran.result.number("left"), 0);
    assert!(!ran.result.flag("killed"));
}

fn sh_mode(scene: &mut Scene<'_>) {
    scene.sh("mkdir /closed && chmod 700 /closed");
    let ran = scene.run(&Exec { user: Some("ann"), cwd: "/closed", ..Exec::of(&["true"]) });
    assert_eq!(ran.unwrap_err().code(), "permission");
}

pub fn stdin(images: &Images) {
    let mut scene = Scene::open(images);
    assert_eq!(scene.sh("cat | wc -c"), "0");
    let (_, id) = scene.start(&Exec { stdin: true, ..Exec::sh("cat") });
    scene.guest.send_data(id, 0, b"one ");
    scene.guest.send_data(id, 0, b"two");
    scene.guest.send(Kind::End, 0, id, &[]);
    assert_eq!(scene.guest.outcome(id).unwrap().number("exitCode"), 0);
    assert_eq!(scene.guest.text(id, 1), "one two");
    let bytes = vec![b'x'; 5 << 20];
    let (_, id) = scene.start(&Exec { stdin: true, ..Exec::sh("sleep 0.3; wc -c") });
    scene.guest.send_data(id, 0, &bytes);
    scene.guest.send(Kind::End, 0, id, &[]);
    scene.guest.outcome(id).unwrap();
    assert_eq!(scene.guest.text(id, 1).trim(), "5242880");
    // A command that doesn't read holds nothing up, and one that ends early takes the rest.
    let (_, id) = scene.start(&Exec { stdin: true, ..Exec::sh("exec true") });
    scene.guest.send_data(id, 0, &bytes);
    assert_eq!(scene.guest.outcome(id).unwrap().number("exitCode"), 0);
    let (deaf, id) = scene.start(&Exec { stdin: true, ..Exec::sh("sleep 1000") });
    scene.guest.send_data(id, 0, &bytes[..262_144]);
    assert_eq!(scene.sh("echo ok"), "ok");
    scene.kill(&deaf, 9).unwrap();
    assert_eq!(scene.guest.outcome(id).unwrap().number("signal"), 9);
}

pub fn what_a_world_sees(images: &Images) {
    let mut scene = Scene::open(images);
    let pids = scene.sh("ls /proc | grep '^[0-9]' | sort -n | tr '\\n' ' '");
    assert!(pids.split(' ').count() <= 6, "{pids}");
    assert_eq!(scene.sh("cat /proc/1/cmdline 2>&1 | tr -d '\\0' | head -c 100"), "/agent");
    for secret in ["environ", "maps", "mem", "exe", "fd/0", "root/img"] {
        let ran = scene
            .run(&Exec::sh(&format!("ls -l /proc/1/{secret} && cat /proc/1/{secret}")))
            .unwrap();
        assert!(ran.code() != 0 || ran.stdout.is_empty(), "{secret}: {ran:?}");
    }
    let status = scene.sh("grep -E 'Cap|NoNewPrivs' /proc/self/status");
    assert!(status.contains("CapEff:\t00000000000000eb"), "{status}");
    assert!(status.contains("CapBnd:\t00000000000000eb"), "{status}");
    let status =
        scene.run(&Exec { user: Some("ann"), ..Exec::sh("grep CapEff /proc/self/status") });
    assert_eq!(status.unwrap().stdout, "CapEff:\t0000000000000000\n");
    for forbidden in [
        "mount -t tmpfs none /tmp",
        "mount -o remount,rw /dev",
        "umount /proc",
        "mknod /tmp/m c 1 1",
        "chroot / true",
        "unshare -m true",
        "unshare -U true",
        "unshare -p true",
        "hostname other",
        "nsenter -t 1 -m true",
        "touch /dev/x",
        "ulimit -Hu 100000",
        "! date -s 2000-01-01 2>&1 | grep 'not permitted'",
        "echo 1 > /proc/sys/kernel/hostname",
    ] {
        let ran = scene.run(&Exec::sh(forbidden)).unwrap();
        assert_ne!(ran.code(), 0, "{forbidden} is allowed: {ran:?}");
    }
    assert_eq!(
        scene.sh("ls /dev | tr '\\n' ' '"),
        "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero"
    );
    assert_eq!(scene.sh("echo x > /dev/null; head -c 3 /dev/zero | wc -c; ls /dev/pts; touch /dev/shm/a && rm /dev/shm/a"), "3\nptmx");
    assert_eq!(
        scene.sh("nproc; head -1 /proc/meminfo | tr -s ' '; cat /etc/hosts"),
        "1\nMemTotal: 1048576 kB\n127.0.0.1 localhost\n127.0.1.1 box"
    );
    let mounts = scene.sh("cut -d' ' -f2,3 /proc/mounts");
    for line in mounts.lines() {
        assert!(
            !line.contains("/img") && !line.contains("/cg") && !line.contains("/run"),
            "{mounts}"
        );
    }
    let listed = scene.guest.call(op("process.list").text("world", "main")).unwrap();
    assert_eq!(listed.list("processes").len(), 0, "{listed:?}");
    assert_eq!(scene.sh("ping -c1 -W1 127.0.0.1 >/dev/null 2>&1; (nc -l -p 99 -e echo hi & sleep 0.2; nc 127.0.0.1 99 </dev/null; wait)"), "hi");
}
