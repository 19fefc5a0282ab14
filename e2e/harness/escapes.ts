/** What a world's walls refuse: each try by its name, as a Python expression that raises where it is refused. */
import { python } from './shells.ts'

const MOUNTS = {
  'mount tmpfs': "call('mount', b'none', b'/mnt', b'tmpfs', 0, None)",
  'mount proc': "call('mount', b'proc', b'/mnt', b'proc', 0, None)",
  'mount cgroups': "call('mount', b'none', b'/mnt', b'cgroup2', 0, None)",
  'mount a terminal file system': "call('mount', b'none', b'/mnt', b'devpts', 0, None)",
  'bind mount': "call('mount', b'/etc', b'/mnt', None, 4096, None)",
  'remount root': "call('mount', None, b'/', None, 32, None)",
  'make root shared': "call('mount', None, b'/', None, 1 << 20, None)",
  'umount proc': "call('umount2', b'/proc', 2)",
  'umount root': "call('umount2', b'/', 2)",
  'move a mount': "system(429, -100, b'/proc', -100, b'/mnt', 0)",
  fsopen: "system(430, b'tmpfs', 0)",
  fsmount: 'system(432, 0, 0, 0)',
  fspick: "system(433, -100, b'/', 0)",
  open_tree: "system(428, -100, b'/', 1)",
  mount_setattr: "system(442, -100, b'/', 0, ctypes.create_string_buffer(32), 32)",
  chroot: "os.chroot('/tmp')",
  pivot_root: "system(155, b'/', b'/tmp')",
  'climb out by dots': "os.listdir('/' + '../' * 40 + 'img')",
  'climb out by a descriptor': 'climb()',
  'open by handle': "system(304, os.open('/', os.O_RDONLY), ctypes.create_string_buffer(64), 0)",
  'rename /dev': "os.rename('/dev', '/dev-mine')",
  'exchange /dev': "system(316, -100, b'/tmp', -100, b'/dev', 2)",
  'remove /proc': "os.rmdir('/proc')",
  'a second name for a device': "os.link('/dev/null', '/tmp/null-mine')",
  'a second name for a file of proc': "os.link('/proc/version', '/tmp/version-mine')",
}

const NAMESPACES = {
  'unshare mounts': "call('unshare', 0x20000)",
  'unshare users': "call('unshare', 0x10000000)",
  'unshare pids': "call('unshare', 0x20000000)",
  'unshare network': "call('unshare', 0x40000000)",
  'unshare cgroups': "call('unshare', 0x2000000)",
  'unshare ipc': "call('unshare', 0x8000000)",
  'unshare uts': "call('unshare', 0x4000000)",
  'a child of other users': 'clone(0x10000000)',
  'a child of other pids': 'clone(0x20000000)',
  setns: "call('setns', os.open('/proc/1/ns/mnt', os.O_RDONLY), 0)",
  'map users': "open('/proc/self/uid_map', 'wb', 0).write(b'0 0 4294967295')",
  'all capabilities': 'capset()',
  'ambient capabilities': "call('prctl', 47, 2, 21, 0, 0)",
  'secure bits': "call('prctl', 28, 0x2f, 0, 0, 0)",
  'new privileges again': "call('prctl', 38, 0, 0, 0, 0)",
}

const DEVICES = {
  mknod: "os.mknod('/tmp/disk', 0o60600, os.makedev(8, 0))",
  'mknod of a character device': "os.mknod('/tmp/mem', 0o20600, os.makedev(1, 1))",
  'mknod of fuse': "os.mknod('/tmp/fuse', 0o20600, os.makedev(10, 229))",
  fuse: "os.open('/dev/fuse', os.O_RDWR)",
  kvm: "os.open('/dev/kvm', os.O_RDWR)",
  tun: "os.open('/dev/net/tun', os.O_RDWR)",
  'memory device': "os.open('/dev/mem', os.O_RDONLY)",
  'write to /dev': "os.open('/dev/mine', os.O_CREAT | os.O_RDWR)",
  'remove a device': "os.unlink('/dev/null')",
  'remove the maker of terminals': "os.unlink('/dev/pts/ptmx')",
  'keys into a terminal': "fcntl.ioctl(os.openpty()[1], 0x5412, b'x')",
  'the console': 'fcntl.ioctl(os.openpty()[1], 0x541d)',
  iopl: 'system(172, 3)',
  ioperm: 'system(173, 0, 1, 1)',
}

const KERNEL = {
  'kernel module': "system(175, b'', 0, b'')",
  'kernel module of a file': "system(313, os.open('/etc/passwd', os.O_RDONLY), b'', 0)",
  'removal of a module': "system(176, b'x', 0)",
  kexec: 'system(246, 0, 0, None, 0)',
  reboot: 'system(169, 0xfee1dead, 672274793, 0x1234567, 0)',
  bpf: 'system(321, 0, None, 0)',
  'asynchronous calls': 'system(425, 1, ctypes.create_string_buffer(120))',
  perf: 'system(298, ctypes.create_string_buffer(128), 0, -1, -1, 0)',
  userfaultfd: 'system(323, 0)',
  keys: 'system(250, 0, -1, 0, 0, 0)',
  'add a key': "system(248, b'user', b'mine', b'x', 1, -3)",
  'request a key': "system(249, b'user', b'mine', None, 0)",
  swap: "system(167, b'/tmp/x', 0)",
  accounting: "system(163, b'/tmp/x')",
  quota: "system(179, 0x800002 << 8, b'/', 0, None)",
  hostname: "socket.sethostname('other')",
  domainname: "system(171, b'other', 5)",
  'set the clock': 'time.clock_settime(time.CLOCK_REALTIME, 0)',
  settimeofday: 'system(164, ctypes.create_string_buffer(16), None)',
  adjtimex: "system(159, ctypes.create_string_buffer(b'\\x01\\x40' + bytes(206), 208))",
  sysctl: "open('/proc/sys/kernel/hostname', 'wb', 0).write(b'x')",
  pid_max: "open('/proc/sys/kernel/pid_max', 'wb', 0).write(b'301')",
  sysrq: "open('/proc/sysrq-trigger', 'wb', 0).write(b'c')",
  'core pattern': "open('/proc/sys/kernel/core_pattern', 'wb', 0).write(b'|/tmp/x')",
}

const AGENT = {
  'ptrace init': 'system(101, 16, 1, 0, 0)',
  'seize init': 'system(101, 0x4206, 1, 0, 0)',
  'read init': "open('/proc/1/mem', 'rb').read(1)",
  'write init': "open('/proc/1/mem', 'wb', 0).write(b'x')",
  'read memory of init': 'memory_of_init(310)',
  'write memory of init': 'memory_of_init(311)',
  'a descriptor of init': 'system(438, system(434, 1, 0), 0, 0)',
  'environment of init': "open('/proc/1/environ', 'rb').read()[0]",
  'maps of init': "open('/proc/1/maps', 'rb').read()[0]",
  'program of init': "open('/proc/1/exe', 'rb').read(1)",
  'descriptors of init': "os.readlink('/proc/1/fd/' + os.listdir('/proc/1/fd')[0])",
  'root of init': "os.listdir('/proc/1/root/img')",
  'directory of init': "os.listdir('/proc/1/cwd/img')",
  'the layers': "os.listdir('/img')",
  'the stage of worlds': "os.listdir('/stage')",
  'the cgroups': "os.mkdir('/cg/main/mine')",
  'a cgroup of the system': "os.mkdir('/sys/fs/cgroup/mine')",
  'the limit of processes': "open('/cg/main/pids.max', 'wb', 0).write(b'max')",
  'files of the disk class': "os.listdir('/disk')",
  'the seed of identities': "os.listdir('/identity')",
  'processes beyond ours': 'processes_beyond()',
  'pipes or sockets in any directory': 'ways_out()',
}

const NETWORK = {
  'raw socket': 'socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)',
  'raw socket of IPv6': 'socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)',
  'packet socket': 'socket.socket(socket.AF_PACKET, socket.SOCK_RAW)',
  'socket to the machine': 'socket.socket(40, socket.SOCK_STREAM).connect((2, 1))',
  'take the loopback down': 'interface(0x8914)',
  'another address': 'interface(0x8916)',
  'rules of a firewall': 'socket.socket().setsockopt(0, 64, bytes(128))',
}

const LIMITS = {
  'more processes': 'resource.setrlimit(resource.RLIMIT_NPROC, (100000, 100000))',
  'more open files': 'resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))',
  'core files': 'resource.setrlimit(resource.RLIMIT_CORE, (1, 1))',
}

/** By what they go for. */
export const TRIES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'mounts and roots': MOUNTS,
  'namespaces and capabilities': NAMESPACES,
  devices: DEVICES,
  'the kernel': KERNEL,
  'init, the agent and its files': AGENT,
  'the network': NETWORK,
  limits: LIMITS,
}

/** Prints a JSON object: what came of each try. */
export const ESCAPE = python(`
import ctypes, fcntl, json, os, resource, socket, stat, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def refused():
    e = ctypes.get_errno(); raise OSError(e, os.strerror(e))
def call(name, *args):
    if getattr(libc, name)(*args) == -1: refused()
def system(number, *args):
    got = libc.syscall(number, *args)
    if got == -1: refused()
    return got
def clone(flags):
    pid = libc.syscall(56, flags | 17, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    if pid == -1: refused()
    os.waitpid(pid, 0)
def capset():
    call('capset', (ctypes.c_uint * 2)(0x20080522, 0), (ctypes.c_uint * 6)(*[0xffffffff, 0xffffffff, 0] * 2))
def memory_of_init(number):
    here = ctypes.create_string_buffer(8)
    ours = (ctypes.c_void_p * 2)(ctypes.addressof(here), 8)
    theirs = (ctypes.c_void_p * 2)(0x400000, 8)
    system(number, 1, ours, 1, theirs, 1, 0)
def climb():
    top = os.open('/', os.O_RDONLY)
    os.chdir('/tmp')
    os.fchdir(top)
    for n in range(40): os.chdir('..')
    os.listdir('img')
def interface(request):
    fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), request, struct.pack('16sH14s', b'lo', 2, bytes(14)))
def processes_beyond():
    seen = {int(name) for name in os.listdir('/proc') if name.isdigit()}
    def lives(pid):
        try: os.kill(pid, 0)
        except ProcessLookupError: return False
        except PermissionError: return True
        return True
    beyond = [pid for pid in range(1, 3000) if pid not in seen and lives(pid) and not os.path.exists(f'/proc/{pid}')]
    if not beyond: raise OSError('none')
def ways_out():
    found = []
    for place, directories, names in os.walk('/'):
        directories[:] = [d for d in directories if os.path.join(place, d) not in ('/proc', '/sys')]
        for name in names:
            mode = os.lstat(os.path.join(place, name)).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode): found.append(os.path.join(place, name))
    if not found: raise OSError('none')
tries = json.loads(sys.argv[1])
came = {}
for name, text in tries.items():
    try: eval(text)
    except (OSError, IndexError, ValueError) as error: came[name] = 'refused'
    except BaseException as error: came[name] = f'broken: {error!r}'
    else: came[name] = 'allowed'
print(json.dumps(came))
`)
