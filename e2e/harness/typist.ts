/** Somebody at a terminal who runs `./sandlot`: a program with a pseudo-terminal of its own, which is typed at and read. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { until } from './until.ts'

const sandlot = fileURLToPath(new URL('../../sandlot', import.meta.url))

/** Relays a terminal; says at the end how the program ended, and whether it left the terminal as it was. */
const RELAY = `
import fcntl, json, os, select, struct, sys, termios
def resize(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
master, slave = os.openpty()
resize(24, 80)
before = termios.tcgetattr(slave)
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in range(3): os.dup2(slave, fd)
    os.execv(sys.argv[1], sys.argv[1:])
print(child, file=sys.stderr, flush=True)
said, status, asked = b'', None, [master, 0]
while status is None or select.select([master], [], [], 0)[0]:
    ready = select.select(asked, [], [], 0.05)[0]
    if master in ready: os.write(1, os.read(master, 65536))
    if 0 in ready:
        got = os.read(0, 65536)
        if not got: asked = [master]
        said += got
        while b'\\n' in said:
            line, said = said.split(b'\\n', 1)
            wish = json.loads(line)
            if 'type' in wish: os.write(master, wish['type'].encode())
            else: resize(wish['rows'], wish['columns'])
    if status is None:
        done, how = os.waitpid(child, os.WNOHANG)
        if done: status = os.waitstatus_to_exitcode(how)
print(json.dumps({'code': status, 'restored': termios.tcgetattr(slave) == before}), file=sys.stderr)
`

export interface TypistEnd {
  /** Negative: the signal that ended it. */
  readonly code: number
  /** The terminal is as it was before. */
  readonly restored: boolean
}

export class Typist {
  /** All that was shown. */
  screen = ''
  readonly end: Promise<TypistEnd>
  readonly #child: ChildProcessWithoutNullStreams
  #read = 0
  #said = ''

  constructor(argv: readonly string[], environment: Record<string, string>) {
    this.#child = spawn('python3', ['-c', RELAY, sandlot, ...argv], {
      env: { ...process.env, TERM: 'xterm', ...environment },
    })
    this.#child.stdin.on('error', () => {})
    this.#child.stdout.setEncoding('utf8').on('data', (text) => {
      this.screen += text
    })
    this.#child.stderr.on('data', (text) => {
      this.#said += text
    })
    this.end = once(this.#child, 'close').then(() => JSON.parse(this.#said.split('\n')[1] ?? ''))
  }

  type(text: string): void {
    this.#wish({ type: text })
  }

  resize(columns: number, rows: number): void {
    this.#wish({ columns, rows })
  }

  /** Waits until this is shown behind what was waited for before. */
  async shows(wanted: RegExp): Promise<RegExpExecArray> {
    const unread = () => this.screen.slice(this.#read)
    const found = await until('the screen', () => wanted.exec(unread())).catch(() => {
      throw new Error(`not shown: ${wanted} in ${JSON.stringify(unread())}`)
    })
    this.#read += found.index + found[0].length
    return found
  }

  /** Signals the program alone. */
  async signal(signal: NodeJS.Signals): Promise<void> {
    const pid = await until('its pid', () => Number(this.#said.split('\n')[0]))
    process.kill(pid, signal)
  }

  #wish(wish: object): void {
    this.#child.stdin.write(`${JSON.stringify(wish)}\n`)
  }
}
