//! Shared pieces of the scenarios.

use sandlot_frames::Kind;

use crate::bed::{Bed, Images};
use crate::guest::Guest;
use crate::pack::{self, Map};
use crate::said::Said;

pub struct Scene<'a> {
    pub images: &'a Images,
    pub guest: Guest,
    pub bed: Bed,
    execs: u32,
}

pub fn op(name: &str) -> Map {
    pack::map().text("op", name)
}

pub struct World {
    pub name: &'static str,
    pub below: Option<&'static str>,
    pub upper_bytes: u64,
    pub upper_inodes: u64,
    pub pids_max: u64,
}

pub const MAIN: World = World {
    name: "main",
    below: None,
    upper_bytes: 256 << 20,
    upper_inodes: 100_000,
    pids_max: 100,
};

#[derive(Clone)]
pub struct Exec<'a> {
    pub world: &'a str,
    pub argv: Vec<&'a [u8]>,
    pub env: Vec<(&'a str, &'a str)>,
    pub cwd: &'a str,
    pub user: Option<&'a str>,
    pub stdin: bool,
    pub mode: &'a str,
    pub timeout_ms: Option<u64>,
    pub head: Option<u64>,
    pub tail: Option<u64>,
    pub ring: Option<u64>,
}

impl<'a> Exec<'a> {
    pub fn of(argv: &[&'a str]) -> Exec<'a> {
        Exec {
            world: "main",
            argv: argv.iter().map(|argument| argument.as_bytes()).collect(),
            env: vec![("PATH", "/bin:/usr/bin"), ("HOME", "/root")],
            cwd: "/",
            user: None,
            stdin: false,
            mode: "buffered",
            timeout_ms: None,
            head: None,
            tail: None,
            ring: None,
        }
    }

    pub fn sh(script: &'a str) -> Exec<'a> {
        Exec::of(&["sh", "-c", script])
    }

    pub fn in_world(self, world: &'a str) -> Exec<'a> {
        Exec { world, ..self }
    }

    pub fn streaming(self) -> Exec<'a> {
        Exec { mode: "stream", ..self }
    }

    pub fn timeout_ms(self, ms: u64) -> Exec<'a> {
        Exec { timeout_ms: Some(ms), ..self }
    }

    fn request(&self, name: &str) -> Map {
        let mut map = op("exec.start")
            .text("world", self.world)
            .text("exec", name)
            .array("argv", self.argv.len(), |out| {
                self.argv.iter().for_each(|argument| pack::bytes(out, argument));
            })
            .array("env", self.env.len(), |out| {
                for (key, value) in &self.env {
                    out.push(0x92);
                    pack::bytes(out, key.as_bytes());
                    pack::bytes(out, value.as_bytes());
                }
            })
            .bytes("cwd", self.cwd.as_bytes())
            .flag("stdin", self.stdin)
            .text("mode", self.mode)
            .optional_number("timeoutMs", self.timeout_ms)
            .optional_number("headBytes", self.head)
            .optional_number("tailBytes", self.tail)
            .optional_number("ringBytes", self.ring);
        if let Some(user) = self.user {
            map = map.text("user", user);
        }
        map
    }
}

/// What a buffered command gave.
#[derive(Debug)]
pub struct Ran {
    pub result: Said,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn code(&self) -> i64 {
        self.result.number("exitCode")
    }
}

impl<'a> Scene<'a> {
    pub fn blank(images: &'a Images) -> Scene<'a> {
        let bed = Bed::start(images);
        let guest = Guest::attach(&bed, true);
        Scene { images, guest, bed, execs: 0 }
    }

    pub fn open(images: &'a Images) -> Scene<'a> {
        let mut scene = Scene::blank(images);
        scene.bed.mount(&images.layer, 0);
        scene.open_world(&MAIN).unwrap();
        scene
    }

    pub fn open_world(&mut self, world: &World) -> Result<Said, Said> {
        let mut map = op("world.open")
            .text("world", world.name)
            .array("layers", 1, |out| pack::bytes(out, b"/img/0"))
            .number("upperBytes", world.upper_bytes)
            .number("upperInodes", world.upper_inodes)
            .number("shmBytes", 16 << 20)
            .number("pidsMax", world.pids_max)
            .number("nofileMax", 1024)
            .text("hostname", "box")
            .number("memoryTotalBytes", 1 << 30)
            .number("cpus", 1)
            .text("hosts", "127.0.0.1 localhost\n127.0.1.1 box\n");
        if let Some(below) = world.below {
            map = map.text("below", below);
        }
        self.guest.call(map)
    }

    pub fn end_world(&mut self, world: &str, timeout_ms: u64) -> Result<Said, Said> {
        self.guest.call(op("world.end").text("world", world).number("timeoutMs", timeout_ms))
    }

    pub fn new_name(&mut self) -> String {
        self.execs += 1;
        format!("e{}", self.execs)
    }

    /// Name and stream.
    pub fn start(&mut self, exec: &Exec<'_>) -> (String, u32) {
        let name = self.new_name();
        let id = self.guest.open_stream(exec.request(&name));
        (name, id)
    }

    pub fn run(&mut self, exec: &Exec<'_>) -> Result<Ran, Said> {
        let (_, id) = self.start(exec);
        if exec.stdin {
            self.guest.send(Kind::End, 0, id, &[]);
        }
        let result = self.guest.outcome(id)?;
        let (stdout, stderr) = (self.guest.text(id, 1), self.guest.text(id, 2));
        Ok(Ran { result, stdout, stderr })
    }

    /// A script that has to succeed; gives its output.
    pub fn sh(&mut self, script: &str) -> String {
        let ran = self.run(&Exec::sh(script)).unwrap_or_else(|error| panic!("{script}: {error:?}"));
        assert_eq!(ran.code(), 0, "{script}: {ran:?}");
        ran.stdout.trim_end().to_string()
    }

    pub fn kill(&mut self, exec: &str, signal: u64) -> Result<Said, Said> {
        self.guest.call(op("exec.kill").text("exec", exec).number("signal", signal))
    }

    pub fn file(
        &mut self,
        name: &str,
        path: &str,
        more: impl FnOnce(Map) -> Map,
    ) -> Result<Said, Said> {
        let map = op(name).text("world", "main").bytes("path", path.as_bytes());
        self.guest.call(more(map))
    }

    pub fn write(&mut self, path: &str, content: &[u8]) -> Result<Said, Said> {
        let id = self.open_write(path);
        self.guest.send_data(id, 0, content);
        self.guest.send(Kind::End, 0, id, &[]);
        self.guest.outcome(id)
    }

    pub fn open_write(&mut self, path: &str) -> u32 {
        let request = op("file.write").text("world", "main").bytes("path", path.as_bytes());
        let request = request.flag("parents", true).flag("append", false).flag("exclusive", false);
        self.guest.open_stream(request)
    }

    pub fn read(&mut self, path: &str) -> Result<Vec<u8>, Said> {
        let request = op("file.read").text("world", "main").bytes("path", path.as_bytes());
        let id = self.guest.open_stream(request);
        let result = self.guest.outcome(id)?;
        let bytes = self.guest.data(id, 1);
        assert_eq!(result.number("sizeBytes"), bytes.len() as i64);
        Ok(bytes)
    }

    pub fn stats(&mut self) -> Said {
        self.guest.call(op("stats")).unwrap()
    }
}
