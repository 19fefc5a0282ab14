/** What `/proc` says of processes. A process that ends meanwhile is none. */
import { readdirSync, readFileSync } from 'node:fs'

export interface ProcessFound {
  readonly pid: number
  readonly parentPid: number
  /** Clock ticks since the machine's start: with the pid it names one process for ever. */
  readonly startTicks: number
  readonly command: string
}

export function processIds(): readonly number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
}

/** Undefined where there is none of this number. */
export function findProcess(pid: number): ProcessFound | undefined {
  const stat = textOf(`/proc/${pid}/stat`)
  // The name before the bracket may hold anything.
  const [, parent, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const startTicks = Number(rest[START_FIELD])
  if (parent === undefined || Number.isNaN(startTicks)) return undefined
  const given = textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim()
  // One that was forked off by a tracer has none.
  const command = given || `[${textOf(`/proc/${pid}/comm`).trim()}]`
  return { pid, parentPid: Number(parent), startTicks, command }
}

export function listProcesses(): readonly ProcessFound[] {
  return processIds().flatMap((pid) => findProcess(pid) ?? [])
}

/** Whether it is the very process that was found, and no other of the same number. */
export function isStill({ pid, startTicks }: ProcessFound): boolean {
  return findProcess(pid)?.startTicks === startTicks
}

/** `starttime`, counted from behind `ppid`. */
const START_FIELD = 17

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
