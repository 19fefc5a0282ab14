/**
 * An internet for a daemon, made of network namespaces: one is the daemon's machine, the other everything outside. No packet leaves them.
 *
 * ```
 * machine: 198.18.0.2, and 10.1.2.3 ── pair ── outside: 198.18.0.1, and all of OUTSIDE on its loopback
 * ```
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const execute = promisify(execFile)
const program = fileURLToPath(new URL('outside.ts', import.meta.url))

/** Every address answers on every port of the outside. */
export const OUTSIDE = {
  public: '203.0.113.10',
  nameServer: '203.0.113.53',
  /** Reached by the machine itself, and never to be by a sandbox. */
  assigned: [
    ...['10.9.0.1', '172.16.0.9', '192.168.7.7', '100.64.0.9', '169.254.169.254'],
    '168.63.129.16',
  ],
  /** Nobody's. */
  nowhere: ['127.0.0.9', '0.0.0.0', '224.0.0.9', '255.255.255.255'],
} as const

/** Of the machine itself. */
export const MACHINE = ['198.18.0.2', '10.1.2.3'] as const

export const PORTS = { tcp: 7_000, udp: 7_001, name: 53 } as const

export class Internet {
  readonly machine: string
  readonly #outside: string
  #server: ChildProcess | undefined

  private constructor() {
    const name = randomBytes(3).toString('hex')
    this.machine = `sltest-${name}-m`
    this.#outside = `sltest-${name}-o`
  }

  static async open(): Promise<Internet> {
    const internet = new Internet()
    try {
      await internet.#make()
      return internet
    } catch (error) {
      await internet.close()
      throw error
    }
  }

  /** Runs a program on the machine, to its end. */
  async run(argv: readonly string[], env: Record<string, string> = {}): Promise<string> {
    const [command, ...args] = onMachine(this.machine, argv)
    const options = { env: { ...process.env, ...env }, timeout: 60_000 }
    const { stdout } = await execute(command as string, args, options)
    return stdout
  }

  async close(): Promise<void> {
    if (this.#server) {
      const over = once(this.#server, 'exit')
      this.#server.kill('SIGKILL')
      await over
    }
    for (const name of [this.machine, this.#outside]) {
      await execute('ip', ['netns', 'delete', name]).catch(() => {})
    }
  }

  async #make(): Promise<void> {
    const { machine } = this
    const outside = this.#outside
    for (const name of [machine, outside]) {
      await execute('ip', ['netns', 'add', name])
      await execute('ip', ['-n', name, 'link', 'set', 'lo', 'up'])
    }
    const link = ['link', 'add', 'eth0', 'netns', machine, 'type', 'veth']
    await execute('ip', [...link, 'peer', 'name', 'eth0', 'netns', outside])
    const address = async (name: string, text: string, device: string) =>
      await execute('ip', ['-n', name, 'address', 'add', text, 'dev', device])
    await address(machine, '198.18.0.2/24', 'eth0')
    await address(outside, '198.18.0.1/24', 'eth0')
    for (const name of [machine, outside]) {
      await execute('ip', ['-n', name, 'link', 'set', 'eth0', 'up'])
    }
    await address(machine, '10.1.2.3/32', 'lo')
    await execute('ip', ['-n', machine, 'route', 'add', 'default', 'via', '198.18.0.1'])
    for (const each of [OUTSIDE.public, OUTSIDE.nameServer, ...OUTSIDE.assigned]) {
      await address(outside, `${each}/32`, 'lo')
    }
    await this.run(['sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward'])
    await this.#serve()
  }

  async #serve(): Promise<void> {
    const argv = [process.execPath, '--disable-warning=ExperimentalWarning', program]
    const [command, ...args] = onMachine(this.#outside, argv)
    const child = spawn(command as string, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    this.#server = child
    const said = once(createInterface(child.stdout), 'line')
    await Promise.race([
      said,
      once(child, 'exit').then(() => Promise.reject(new Error('no outside'))),
    ])
  }
}

/** The same program, in the network of a namespace and in nothing else of it. */
export function onMachine(namespace: string, argv: readonly string[]): readonly string[] {
  return ['nsenter', `--net=/run/netns/${namespace}`, '--', ...argv]
}
