/** What `/proc` says of processes. */
import { readdirSync, readFileSync } from 'node:fs'

export function allProcesses(): readonly number[] {
  return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []))
}

export function childrenOf(pid: number): readonly number[] {
  return readdirSync('/proc').flatMap((name) =>
    /^\d+$/.test(name) && parentOf(name) === pid ? [Number(name)] : [],
  )
}

export function commandOf(pid: number): string {
  return textOf(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim()
}

/** Resident memory now, and the most there ever was. Bytes. */
export function memoryOf(pid: number): { readonly nowBytes: number; readonly peakBytes: number } {
  const status = textOf(`/proc/${pid}/status`)
  const of = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) * 1024
  return { nowBytes: of('VmRSS'), peakBytes: of('VmHWM') }
}

function parentOf(pid: string): number {
  const stat = textOf(`/proc/${pid}/stat`)
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
