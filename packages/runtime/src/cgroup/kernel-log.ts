import { closeSync, constants, openSync, readSync } from 'node:fs'
import { codeOf } from './io.ts'

const PLACE = '/dev/kmsg'
const RECORD_BYTES_MAX = 8_192
/** More than the log holds. */
const RECORDS_MAX = 50_000

/** For whose sake the kernel killed: a process's own group was at its limit, or one above it, or the machine. */
export type OomDomain = 'own' | 'above'

/**
 * What the kernel wrote when it first killed for memory in the group of this name. Undefined where it didn't, where nobody may read it, or
 * where it wrote too much at once.
 */
export function oomDomain(
  name: string,
  log: () => Iterable<string> = kernelLog,
): OomDomain | undefined {
  for (const record of log()) {
    const [, details = ''] = /oom-kill:(.*)/.exec(record) ?? []
    if (!endsIn(name, /task_memcg=([^,]*)/.exec(details)?.[1])) continue
    return endsIn(name, /oom_memcg=([^,]*)/.exec(details)?.[1]) ? 'own' : 'above'
  }
  return undefined
}

function endsIn(name: string, group = ''): boolean {
  return group.endsWith(`/${name}`)
}

/** Oldest first; empty where it may not be read. */
export function* kernelLog(): Iterable<string> {
  const file = openLog()
  if (file === undefined) return
  const record = Buffer.alloc(RECORD_BYTES_MAX)
  try {
    for (let count = 0; count < RECORDS_MAX; count++) {
      const length = readRecord(file, record)
      if (length === undefined) return
      yield record.toString('utf8', 0, length)
    }
  } finally {
    closeSync(file)
  }
}

function openLog(): number | undefined {
  try {
    return openSync(PLACE, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch {
    return undefined
  }
}

/** Undefined at its end. */
function readRecord(file: number, into: Buffer): number | undefined {
  try {
    return readSync(file, into)
  } catch (error) {
    // It was overwritten meanwhile: the next one is the oldest that there is.
    return codeOf(error) === 'EPIPE' ? 0 : undefined
  }
}
