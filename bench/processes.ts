/** What `/proc` says of processes. */
import { readdirSync, readFileSync } from 'node:fs'

const TICKS_PER_SECOND = 100

/** Memory that is a process's own, and its share of what it shares. Bytes; 0 where it is gone. */
export function proportionalBytes(pid: number): number {
  const rollup = textOf(`/proc/${pid}/smaps_rollup`)
  return Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0) * 1024
}

/** Resident memory of one process. Bytes. */
export function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(textOf(`/proc/${pid}/status`))?.[1] ?? 0) * 1024
}

/** Processor time that a process itself has used. Milliseconds, in steps of ten. */
export function processorMs(pid: number): number {
  const stat = textOf(`/proc/${pid}/stat`)
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')

  const ticks = [11, 12].reduce((sum, index) => sum + Number(fields[index] ?? 0), 0)
  return (ticks / TICKS_PER_SECOND) * 1000
}

export function childrenOf(pid: number): readonly number[] {
  return allPids().filter((each) => {
    const stat = textOf(`/proc/${each}/stat`)
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid
  })
}

export function commandOf(pid: number): string {
  return textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim()
}

/** Processes that have this text in their command or their environment. */
export function processesWith(text: string): readonly number[] {
  return allPids().filter(
    (pid) =>
      pid !== process.pid && (commandOf(pid).includes(text) || environmentOf(pid).includes(text)),
  )
}

function environmentOf(pid: number): string {
  return textOf(`/proc/${pid}/environ`)
}

function allPids(): readonly number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
