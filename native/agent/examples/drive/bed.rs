//! One sandbox on real gVisor, made the way README.md tells the host to make it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

pub struct Bed {
    directory: PathBuf,
    id: String,
    pid: i32,
    pub fifo_in: PathBuf,
    pub fifo_out: PathBuf,
    /// Kept so that the agent never sees the end of its input while a test changes drivers.
    holders: Vec<OwnedFd>,
}

/// Images are built once for all sandboxes of a run.
pub struct Images {
    pub runsc: PathBuf,
    pub directory: PathBuf,
    pub root: PathBuf,
    pub layer: PathBuf,
}

impl Images {
    pub fn build() -> Images {
        let runsc =
            std::env::var_os("SANDLOT_RUNSC").expect("SANDLOT_RUNSC names the runsc binary");
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let directory = PathBuf::from(format!("/run/sl-agent-dev/{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let agent = std::env::var_os("SANDLOT_AGENT").map_or_else(
            || here.join("../target/x86_64-unknown-linux-gnu/release/sandlot-agent"),
            PathBuf::from,
        );
        let root = directory.join("root.erofs");
        run(Command::new(here.join("image.sh")).arg(agent).arg(&root));
        let layer = directory.join("layer.erofs");
        build_layer(&directory, &layer);
        Images { runsc: runsc.into(), directory, root, layer }
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
        let _ = fs::remove_dir("/run/sl-agent-dev");
    }
}

/// A small world: busybox and what programs expect to find.
fn build_layer(directory: &Path, layer: &Path) {
    let tree = directory.join("tree");
    for name in ["bin", "etc", "tmp", "root", "proc", "dev", "sys", "usr/bin", "work"] {
        fs::create_dir_all(tree.join(name)).unwrap();
    }
    fs::copy("/bin/busybox", tree.join("bin/busybox")).expect("busybox-static is installed");
    let list = Command::new("/bin/busybox").arg("--list").output().unwrap();
    for name in String::from_utf8(list.stdout).unwrap().lines().filter(|name| *name != "busybox") {
        std::os::unix::fs::symlink("busybox", tree.join("bin").join(name)).unwrap();
    }
    fs::write(tree.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\nann:x:1000:1001::/:/bin/sh\n")
        .unwrap();
    fs::write(tree.join("etc/group"), "root:x:0:\nann:x:1001:\nstaff:x:50:ann\n").unwrap();
    fs::write(tree.join("etc/hosts"), "127.0.0.1 image\n").unwrap();
    fs::write(tree.join("etc/motd"), "from the layer\n").unwrap();
    fs::write(tree.join("bin/bare"), "echo bare \"$@\"\n").unwrap();
    run(Command::new("chmod").args(["755"]).arg(tree.join("bin/bare")));
    run(Command::new("chmod").args(["1777"]).arg(tree.join("tmp")));
    run(Command::new("mkfs.erofs")
        .args(["--quiet", "-x-1", "-E", "noinline_data", "--all-root"])
        .arg(layer)
        .arg(&tree)
        .stdout(Stdio::null()));
    fs::remove_dir_all(&tree).unwrap();
}

impl Bed {
    pub fn start(images: &Images) -> Bed {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let id = format!("x{number}");
        let directory = images.directory.join(&id);
        for name in ["b", "empty"] {
            fs::create_dir_all(directory.join(name)).unwrap();
        }
        let config = config(&images.root, &directory.join("empty"));
        fs::write(directory.join("b/config.json"), config.to_string()).unwrap();
        let (fifo_in, fifo_out) = (directory.join("in"), directory.join("out"));
        for fifo in [&fifo_in, &fifo_out] {
            run(Command::new("mkfifo").args(["-m", "600"]).arg(fifo));
        }
        let holders = [&fifo_in, &fifo_out].map(|fifo| open_fifo(fifo, true));
        for fifo in &holders {
            unsafe { libc::fcntl(fifo.as_raw_fd(), libc::F_SETPIPE_SZ, 1 << 20) };
        }
        let sandbox_in =
            OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&fifo_in).unwrap();
        let sandbox_out = OpenOptions::new().write(true).open(&fifo_out).unwrap();
        let words = File::create(directory.join("agent.log")).unwrap();
        let mut create = Command::new(&images.runsc);
        create.args(flags(images, &directory));
        create.args(["create", "--pid-file"]).arg(directory.join("pid")).arg("--bundle");
        create.arg(directory.join("b")).arg(&id);
        create.stdin(sandbox_in).stdout(sandbox_out).stderr(words);
        assert!(create.status().unwrap().success(), "{}", log_of(&directory));
        let pid = fs::read_to_string(directory.join("pid")).unwrap().trim().parse().unwrap();
        let holders = Vec::from(holders);
        let bed = Bed { directory, id, pid, fifo_in, fifo_out, holders };
        bed.call(
            "containerManager.SetNetworkArgs",
            json!({ "LoopbackLinks": [{ "Name": "lo", "Addresses": [
                { "Address": "127.0.0.1", "PrefixLen": 8 },
                { "Address": "::1", "PrefixLen": 128 },
            ], "Routes": [] }] }),
            None,
        );
        bed.call("containerManager.StartRoot", json!(bed.id), None);
        bed
    }

    /// From now on only drivers hold the pipes.
    pub fn let_go(&mut self) {
        self.holders.clear();
    }

    pub fn mount(&self, image: &Path, layer: usize) {
        let image = File::open(image).unwrap();
        let argument = json!({
            "ContainerID": self.id, "Source": "layer", "Destination": format!("/img/{layer}"), "FsType": "erofs",
        });
        self.call("containerManager.Mount", argument, Some(image.as_raw_fd()));
    }

    fn call(&self, method: &str, argument: Value, descriptor: Option<i32>) -> Value {
        let path = self.directory.join("r").join(format!("runsc-{}.sock", self.id));
        let mut socket = UnixStream::connect(path).unwrap();
        let request = json!({ "method": method, "arg": argument }).to_string();
        send_first_byte(&socket, request.as_bytes()[0], descriptor);
        socket.write_all(&request.as_bytes()[1..]).unwrap();
        let mut reply = Vec::new();
        let mut chunk = [0; 65536];
        loop {
            let count = socket.read(&mut chunk).unwrap();
            assert!(count > 0, "{method}: closed; {}", self.last_words());
            reply.extend_from_slice(&chunk[..count]);
            if let Ok(value) = serde_json::from_slice::<Value>(&reply) {
                assert_eq!(value["success"], true, "{method}: {value}");
                return value;
            }
        }
    }

    pub fn alive(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.pid))
            .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or("").trim_start().starts_with('Z'))
    }

    /// Proportional memory of the sentry and its helpers.
    pub fn memory_kib(&self) -> u64 {
        let mut total = 0;
        for pid in self.descendants() {
            let rollup =
                fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            let line = rollup.lines().find(|line| line.starts_with("Pss:"));
            total += line
                .and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
                .unwrap_or(0);
        }
        total
    }

    /// Processor time that the sandbox has used.
    pub fn cpu_ms(&self) -> u64 {
        let ticks = |pid: &i32| -> u64 {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let fields: Vec<&str> =
                stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
            [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum()
        };
        self.descendants().iter().map(ticks).sum::<u64>() * 10
    }

    fn descendants(&self) -> Vec<i32> {
        let mut found = vec![self.pid];
        let mut at = 0;
        while at < found.len() {
            let children = format!("/proc/{0}/task/{0}/children", found[at]);
            let children = fs::read_to_string(children).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
            at += 1;
        }
        found
    }

    pub fn last_words(&self) -> String {
        let agent = fs::read_to_string(self.directory.join("agent.log")).unwrap_or_default();
        format!("agent: {agent}; runsc: {}", log_of(&self.directory))
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.last_words());
        }
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn config(root: &Path, empty: &Path) -> Value {
    let capabilities: Vec<String> = [
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "SETGID",
        "SETUID",
        "SETPCAP",
        "SYS_CHROOT",
        "SYS_ADMIN",
        "SYS_RESOURCE",
        "MKNOD",
    ]
    .iter()
    .map(|name| format!("CAP_{name}"))
    .collect();
    let namespaces = ["pid", "ipc", "uts", "mount", "network"].map(|kind| json!({ "type": kind }));
    json!({
        "ociVersion": "1.1.0",
        "hostname": "blank",
        "process": {
            "terminal": false, "user": { "uid": 0, "gid": 0 }, "args": ["/agent"], "cwd": "/", "env": [],
            "noNewPrivileges": true,
            "rlimits": [{ "type": "RLIMIT_NOFILE", "hard": 65536, "soft": 65536 }],
            "capabilities": { "bounding": capabilities, "effective": capabilities, "permitted": capabilities },
        },
        "root": { "path": empty, "readonly": false },
        "mounts": [{ "destination": "/proc", "type": "proc", "source": "proc" }],
        "annotations": { "dev.gvisor.spec.rootfs.type": "erofs", "dev.gvisor.spec.rootfs.source": root },
        "linux": { "namespaces": namespaces },
    })
}

fn flags(images: &Images, directory: &Path) -> Vec<String> {
    let path = |name: &str| directory.join(name).display().to_string();
    let mut flags = vec![
        format!("--root={}", path("r")),
        format!("--shared-root={}", images.directory.join("s").display()),
        format!("--log={}", path("runsc.log")),
        "--log-format=json".into(),
    ];
    flags.extend(
        [
            "--network=none",
            "--platform=systrap",
            "--ignore-cgroups",
            "--host-settings=ignore",
            "--control-rpc-stop-timeout=0",
            "--in-sandbox-cgroup=v2",
            "--overlay2=none",
        ]
        .map(String::from),
    );
    if let Ok(debug) = std::env::var("SANDLOT_DRIVE_DEBUG") {
        flags.extend(["--debug".into(), format!("--debug-log={debug}/"), "--strace".into()]);
    }
    flags
}

fn log_of(directory: &Path) -> String {
    fs::read_to_string(directory.join("runsc.log")).unwrap_or_default()
}

pub fn open_fifo(path: &Path, both: bool) -> OwnedFd {
    let mut options = OpenOptions::new();
    options.read(true).write(both).custom_flags(libc::O_NONBLOCK);
    options.open(path).unwrap().into()
}

fn send_first_byte(socket: &UnixStream, byte: u8, descriptor: Option<i32>) {
    let bytes = [byte];
    let mut part = libc::iovec { iov_base: bytes.as_ptr() as *mut _, iov_len: 1 };
    let mut control = [0u64; 4];
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        if let Some(fd) = descriptor {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(4) as usize;
            let header = libc::CMSG_FIRSTHDR(&message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
            libc::CMSG_DATA(header).cast::<i32>().write_unaligned(fd);
        }
        assert_eq!(libc::sendmsg(socket.as_raw_fd(), &message, 0), 1);
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}
