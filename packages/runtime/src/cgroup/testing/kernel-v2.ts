/**
 * cgroup2 as the kernel's documentation describes it, in memory: which files a group has and when, what may be written, and what is
 * refused with which error. It decides nothing of memory or time; tests say what a group met (`meets`).
 */
import { basename, dirname } from 'node:path'
import type { ControlIo } from '../io.ts'

export interface KernelOptions {
  /** What stands in place of the mount. */
  readonly root: string
  /** The group at the mount: the machine's own, or one of a container. Default: the machine's. */
  readonly isMachine?: boolean
  readonly controllers?: readonly string[]
  /** Files that this kernel, an older one, doesn't have. */
  readonly lacks?: readonly string[]
}

/** A process in it; `kill` ends it, and then it leaves by `ended`. */
export interface KernelProcess {
  readonly pid: number
  readonly kill: () => void
}

interface Group {
  readonly children: Map<string, Group>
  readonly processes: Map<number, KernelProcess>
  /** Of those that are written, what was written last; of those that are only read, what they say. */
  readonly files: Map<string, string>
  /** Handed on to those below. */
  control: ReadonlySet<string>
}

const OF_CONTROLLER: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  memory: {
    ...{ 'memory.max': 'max', 'memory.high': 'max', 'memory.swap.max': 'max' },
    ...{ 'memory.current': '0', 'memory.peak': '0', 'memory.oom.group': '0' },
    'memory.stat': 'anon 0\nfile 0\ninactive_file 0\nactive_file 0',
    'memory.events': 'low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0',
  },
  cpu: { 'cpu.max': 'max 100000', 'cpu.weight': '100' },
  pids: { 'pids.max': 'max', 'pids.current': '0', 'pids.events': 'max 0' },
}
const DOMAIN_CONTROLLERS = new Set(['memory', 'io'])
const COUNTED = new Set([
  'memory.current',
  'memory.peak',
  'memory.stat',
  'memory.events',
  'cpu.stat',
])

export class KernelV2 implements ControlIo {
  readonly #options: KernelOptions
  readonly #root: Group

  constructor(options: KernelOptions) {
    this.#options = options
    this.#root = {
      ...{ children: new Map(), processes: new Map(), control: new Set<string>() },
      files: new Map(options.isMachine === false ? [['memory.max', 'max']] : []),
    }
  }

  /** A process is in the group of this directory from now on. */
  place(directory: string, process: KernelProcess): void {
    this.#checkTakes(this.#group(directory), directory)
    this.ended(process.pid)
    this.#group(directory).processes.set(process.pid, process)
  }

  ended(pid: number): void {
    for (const group of this.#all()) group.processes.delete(pid)
  }

  /** What the kernel counts in a group. */
  meets(path: string, text: string): void {
    if (!COUNTED.has(basename(path))) throw new Error(`${path} is not counted`)
    this.#group(dirname(path)).files.set(basename(path), text)
  }

  read(path: string): string {
    const { group, name } = this.#file(path)
    if (name === 'cgroup.kill') throw failure('EINVAL', path)
    return `${this.#content(group, name)}\n`
  }

  write(path: string, text: string): void {
    const { group, name, isRoot } = this.#file(path)
    if (name === 'cgroup.subtree_control') this.#control(group, isRoot, path, text)
    else if (name === 'cgroup.procs') this.#migrate(group, dirname(path), text, path)
    else if (name === 'cgroup.kill') this.#kill(group, text, path)
    else this.#set(group, name, text, path)
  }

  #kill(group: Group, text: string, path: string): void {
    if (text !== '1') throw failure('ERANGE', path)
    for (const { kill } of allProcesses(group)) kill()
  }

  #set(group: Group, name: string, text: string, path: string): void {
    if (COUNTED.has(name) || ['cgroup.controllers', 'cgroup.events'].includes(name)) {
      throw failure('EINVAL', path)
    }
    const wrong = refusalOf(name, text)
    if (wrong) throw failure(wrong, path)
    group.files.set(name, text)
  }

  async make(path: string): Promise<void> {
    const above = this.#group(dirname(path))
    if (above.children.has(basename(path))) throw failure('EEXIST', path)
    const made: Group = {
      ...{ children: new Map(), processes: new Map(), control: new Set<string>() },
      files: new Map(),
    }
    above.children.set(basename(path), made)
  }

  async remove(path: string): Promise<void> {
    const group = this.#group(path)
    if (group.children.size > 0 || group.processes.size > 0) throw failure('EBUSY', path)
    this.#group(dirname(path)).children.delete(basename(path))
  }

  async directories(path: string): Promise<readonly string[]> {
    return [...this.#group(path).children.keys()]
  }

  #content(group: Group, name: string): string {
    if (name === 'cgroup.controllers') return [...this.#available(group)].join(' ')
    if (name === 'cgroup.subtree_control') return [...group.control].join(' ')
    if (name === 'cgroup.procs') return [...group.processes.keys()].join('\n')
    if (name === 'cgroup.events')
      return `populated ${allProcesses(group).length > 0 ? 1 : 0}\nfrozen 0`
    return group.files.get(name) ?? this.#filesOf(group)[name] ?? ''
  }

  /** Also which files there are: those of each controller that the group above hands on. */
  #filesOf(group: Group): Readonly<Record<string, string>> {
    const isRoot = group === this.#root
    const core = ['cgroup.procs', 'cgroup.controllers', 'cgroup.subtree_control']
    const ofOthers = ['cgroup.events', 'cgroup.kill', 'cgroup.type']
    const isMachine = isRoot && this.#options.isMachine !== false
    const names = isMachine ? core : [...core, ...ofOthers]
    const handed = isMachine ? [] : [...this.#available(group)]
    const files = Object.assign(
      { 'cpu.stat': 'usage_usec 0' },
      ...names.map((name) => ({ [name]: '' })),
      ...handed.map((controller) => OF_CONTROLLER[controller] ?? {}),
    )
    for (const name of this.#options.lacks ?? []) delete files[name]
    return files
  }

  #available(group: Group): ReadonlySet<string> {
    if (group === this.#root) {
      return new Set(this.#options.controllers ?? ['cpuset', 'cpu', 'io', 'memory', 'pids'])
    }
    return this.#above(group).control
  }

  #control(group: Group, isRoot: boolean, path: string, text: string): void {
    const control = new Set(group.control)
    for (const word of text.trim().split(/\s+/)) {
      const [sign, name] = [word[0], word.slice(1)]
      if (sign !== '+' && sign !== '-') throw failure('EINVAL', path)
      if (sign === '+') {
        if (!this.#available(group).has(name)) throw failure('ENOENT', path)
        control.add(name)
      } else {
        const isUsed = [...group.children.values()].some((child) => child.control.has(name))
        if (isUsed) throw failure('EBUSY', path)
        control.delete(name)
      }
    }
    // The machine's root alone may have processes beside controllers that divide what they share.
    const mayBoth = isRoot && this.#options.isMachine !== false
    const divides = [...control].some((name) => DOMAIN_CONTROLLERS.has(name))
    if (!mayBoth && divides && group.processes.size > 0) throw failure('EBUSY', path)
    group.control = control
  }

  #migrate(group: Group, directory: string, text: string, path: string): void {
    const pid = Number(text.trim())
    const moved = this.#all().flatMap(({ processes }) => processes.get(pid) ?? [])[0]
    if (!moved) throw failure('ESRCH', path)
    this.#checkTakes(group, directory)
    this.ended(pid)
    group.processes.set(pid, moved)
  }

  #checkTakes(group: Group, directory: string): void {
    const mayBoth = group === this.#root && this.#options.isMachine !== false
    const divides = [...group.control].some((name) => DOMAIN_CONTROLLERS.has(name))
    if (!mayBoth && divides) throw failure('EBUSY', `${directory}/cgroup.procs`)
  }

  #file(path: string): { readonly group: Group; readonly name: string; readonly isRoot: boolean } {
    const group = this.#group(dirname(path))
    const name = basename(path)
    if (!(name in this.#filesOf(group))) throw failure('ENOENT', path)
    return { group, name, isRoot: group === this.#root }
  }

  #group(directory: string): Group {
    const { root } = this.#options
    let group = this.#root
    if (directory === root) return group
    for (const name of directory.slice(root.length + 1).split('/')) {
      const next = group.children.get(name)
      if (!next) throw failure('ENOENT', directory)
      group = next
    }
    return group
  }

  #above(group: Group): Group {
    const above = this.#all().find(({ children }) => [...children.values()].includes(group))
    return above ?? this.#root
  }

  #all(from = this.#root): Group[] {
    return [from, ...[...from.children.values()].flatMap((child) => this.#all(child))]
  }
}

function allProcesses(group: Group): KernelProcess[] {
  const below = [...group.children.values()].flatMap(allProcesses)
  return [...group.processes.values(), ...below]
}

/** The error for what can't be written to a file of a controller. */
function refusalOf(name: string, text: string): string | undefined {
  const number = text === 'max' ? 0 : Number(text)
  if (['memory.max', 'memory.high', 'memory.swap.max'].includes(name)) {
    return number >= 0 ? undefined : 'EINVAL'
  }
  if (name === 'pids.max') return number >= 0 && number <= 2 ** 22 ? undefined : 'EINVAL'
  if (name === 'memory.oom.group') return /^[01]$/.test(text) ? undefined : 'EINVAL'
  if (name === 'cpu.weight') return number >= 1 && number <= 10_000 ? undefined : 'ERANGE'
  if (name === 'cpu.max') {
    const [quota = '', period = '100000'] = text.split(' ')
    const isPeriod = Number(period) >= 1_000 && Number(period) <= 1_000_000
    return isPeriod && (quota === 'max' || Number(quota) >= 1_000) ? undefined : 'EINVAL'
  }
  return 'EINVAL'
}

function failure(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code })
}
