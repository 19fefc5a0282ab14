import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Mistake } from '../failure.ts'
import { printBytes } from '../output/terminal.ts'

export interface SaveOptions {
  readonly signal: AbortSignal
  /** Default: as the process makes files. */
  readonly mode?: number
}

/** Writes a stream to a new file, or to standard output for `-`. A file that was not written to its end is removed. */
export async function saveBytes(
  bytes: AsyncIterable<Uint8Array>,
  path: string,
  { signal, mode }: SaveOptions,
): Promise<void> {
  if (path === '-') {
    for await (const part of bytes) await printBytes(part)
    return
  }
  const file = createWriteStream(path, {
    ...{ flags: 'wx', flush: true },
    ...(mode === undefined ? {} : { mode }),
  })
  try {
    await pipeline(Readable.from(bytes), file, { signal })
  } catch (error) {
    if (file.pending) throw notWritable(path, error)
    await rm(path, { force: true })
    signal.throwIfAborted()
    throw error
  }
}

/** Nothing was written: whatever is there stays. */
function notWritable(path: string, error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'EEXIST') {
    return new Mistake(`${path} is there already`, 'remove it, or take another name')
  }
  if (code === undefined) return error
  const message = error instanceof Error ? error.message : String(error)
  return new Mistake(`${path} can't be written: ${message}`, 'check the path')
}
