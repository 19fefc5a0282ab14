import type { FakeCommand, FakeReply, FakeScript } from '../fake/script.ts'
import type { TerminalSize } from '../guest/guest.ts'

/**
 * Every shell text of the suite. Real drivers run them; a driver without processes is scripted with what they do, so that both
 * are held to the same results.
 */
export const SHELL = {
  echo: 'echo out; echo err >&2',
  exit7: 'exit 7',
  killItself: 'kill -KILL $$',
  stdin: 'cat',
  surroundings: 'echo $GREETING; pwd; id -u',
  sleep: 'echo before; sleep 1000; echo after',
  tree: 'sleep 1000 & setsid sleep 1000 & (setsid sh -c "sleep 1000; true" &) ; wait',
  stubborn: 'trap "" TERM INT HUP; echo deaf; while :; do sleep 1; done',
  machine: 'hostname; nproc; grep MemTotal /proc/meminfo; ulimit -n',
  forkBomb:
    "exec python3 -c \"\nimport os, sys\nfor n in range(1000):\n try:\n  if os.fork() == 0: os.execvp('sleep', ['sleep', '1000'])\n except OSError: print('refused'); sys.exit(3)\n\"",
  eatMemory: 'exec python3 -c "\nblocks = []\nwhile True: blocks.append(bytearray(8 << 20))\n"',
  fillDisk:
    'dd if=/dev/zero of=/fill bs=1M count=4096 2>/dev/null; echo $?; rm /fill; echo x > /after && cat /after',
  fillLarge: 'dd if=/dev/zero of=/fill bs=1M count=4096 2>/dev/null; echo $?; stat -c %s /fill',
  fillAll:
    'for f in /fill /dev/shm/fill; do dd if=/dev/zero of=$f bs=1M count=4096 2>/dev/null; done; exec python3 -c "print(len(bytearray(96 << 20)))"',
  manyFiles:
    "exec python3 -c \"\nimport os\nos.mkdir('/many')\ntry:\n for n in range(200000): os.close(os.open(f'/many/{n}', os.O_CREAT))\nexcept OSError as e: print(e.strerror)\n\"",
  leaveDaemon: 'echo answer > /work; (setsid sleep 1000 > /dev/null 2>&1 &); echo $$',
  countProcesses: 'cat /work; ls /proc | grep -c "^[0-9]*$"',
  counter:
    "exec python3 -c \"\nimport socket, threading, time\nn = 0\nlog = open('/log', 'w')\nserver = socket.create_server(('127.0.0.1', 8123))\ndef serve():\n while True:\n  peer, _ = server.accept()\n  peer.sendall(str(n).encode())\n  peer.close()\nthreading.Thread(target=serve, daemon=True).start()\nwhile True:\n n += 1\n print(n, file=log, flush=True)\n time.sleep(0.01)\n\"",
  askCounter:
    'exec python3 -c "\nimport socket\nprint(socket.create_connection((\'127.0.0.1\', 8123)).recv(99).decode())\n"',
  ports:
    'exec python3 -c "\nimport socket, threading\ndef echo(peer):\n while part := peer.recv(65536): peer.sendall(part)\n peer.close()\ndef serve(port, each):\n server = socket.create_server((\'127.0.0.1\', port))\n while True: threading.Thread(target=each, args=(server.accept()[0],)).start()\nthreading.Thread(target=serve, args=(8200, echo)).start()\nserve(8201, socket.socket.close)\n"',
  replace: 'echo changed > /work; cat /work',
  typed: 'tty; trap "stty size" WINCH; stty size; while :; do read line && eval "$line"; done',
} as const

const REPLIES: Record<keyof typeof SHELL, (command: FakeCommand) => FakeReply> = {
  echo: () => ({ stdout: 'out\n', stderr: 'err\n' }),
  exit7: () => ({ exitCode: 7 }),
  killItself: () => ({ signal: 9 }),
  stdin: ({ stdin }) => ({ stdout: stdin }),
  surroundings: ({ env, cwd, user }) => ({ stdout: `${env.GREETING}\n${cwd}\n${user}\n` }),
  sleep: () => ({ hangs: true, stdout: 'before\n' }),
  tree: () => ({ hangs: true }),
  stubborn: () => ({ hangs: true, stdout: 'deaf\n' }),
  machine: () => ({ stdout: 'conformance\n1\nMemTotal: 131072 kB\n256\n' }),
  forkBomb: () => ({ exitCode: 3, stdout: 'refused\n' }),
  eatMemory: () => ({ dies: 'oom_limit' }),
  fillDisk: () => ({ stdout: '1\nx\n' }),
  fillLarge: () => ({ stdout: `1\n${256 * 2 ** 20}\n` }),
  fillAll: () => ({ stdout: '100663296\n' }),
  manyFiles: () => ({ stdout: 'No space left on device\n' }),
  leaveDaemon: ({ files }) => {
    files.put('/work', 'answer\n')
    return { stdout: '2\n' }
  },
  countProcesses: ({ files }) => ({ stdout: `${Buffer.from(files.bytes('/work') ?? '')}3\n` }),
  counter: () => ({ hangs: true }),
  askCounter: () => ({ stdout: '1\n' }),
  typed: ({ terminal }) => ({
    stdout: terminal ? `/dev/pts/0\r\n${describe(terminal)}` : 'not a tty\n',
    types: (typed, size) => {
      if (typed === '') return { prints: describe(size) }
      const code = /^exit (\d+)\n$/.exec(typed)
      const echoed = typed.replace('\n', '\r\n')
      if (code) return { prints: echoed, exitCode: Number(code[1]) }
      return { prints: `${echoed}${typed.replace('echo ', '').replace('\n', '\r\n')}` }
    },
  }),
  ports: ({ listen }) => {
    listen(8_200, (connection) => void connection.pipe(connection), '127.0.0.1')
    listen(8_201, (connection) => void connection.end(), '127.0.0.1')
    return { hangs: true }
  },
  replace: ({ files }) => {
    files.put('/work', 'changed\n')
    return { stdout: 'changed\n' }
  },
}

const describe = ({ columns, rows }: TerminalSize) => `${rows} ${columns}\r\n`

/** For a scripted driver. */
export const conformanceScript: FakeScript = (command) => {
  const names = Object.keys(SHELL) as (keyof typeof SHELL)[]
  const name = names.find((each) => SHELL[each] === command.argv[2])
  if (!name) throw new Error(`no reply for ${command.argv[2]}`)
  return REPLIES[name](command)
}
