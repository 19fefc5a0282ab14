/** Rows of results as a file that is whole when it is there. */
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import type { ResultRow } from 'sandlot'
import { Failure } from '../failure.ts'
import { note } from './terminal.ts'

export interface Export {
  readonly file: string
  /** Id of the run: what another run of the same name left is no beginning of this file. */
  readonly run: string
  /** Default: what an export that was stopped has written is gone on with. */
  readonly from: string | undefined
  rowsFrom(cursor: string | undefined): AsyncIterable<ResultRow>
  lineOf(row: ResultRow): Uint8Array
  /** Makes of the rows, one JSON a line, the file that is wanted. Default: it is that already. */
  readonly convert?: ((lines: string, file: string) => Promise<void>) | undefined
}

/** A row is shorter than this. */
const TAIL_BYTES = 2 ** 20
const NEW_LINE = 10

/** Writes beside the file, and puts it in its place when the last row is on the disk. Resolves to how many rows it has written. */
export async function exportRows(options: Export): Promise<number> {
  const { file, run, from, rowsFrom, lineOf, convert } = options
  const partial = `${file}.partial`
  let rows = 0
  try {
    await using handle = await open(partial, from === undefined ? 'a+' : 'w+')
    const cursor = from ?? (await resume(handle, run))
    if (cursor !== undefined && from === undefined) note(`goes on with what ${partial} has`)
    for await (const row of rowsFrom(cursor)) {
      await handle.appendFile(lineOf(row))
      rows++
    }
    await handle.sync()
  } catch (error) {
    if (isOfFile(error)) throw unwritable(file, error)
    if (from === undefined) note(`${partial} has what was read: the same command goes on with it`)
    throw error
  }
  try {
    if (convert) await convertInto(partial, file, convert)
    else await rename(partial, file)
  } catch (error) {
    throw isOfFile(error) ? unwritable(file, error) : error
  }
  return rows
}

async function convertInto(
  partial: string,
  file: string,
  convert: NonNullable<Export['convert']>,
): Promise<void> {
  const converted = `${file}.converted`
  await convert(partial, converted)
  await rename(converted, file)
  await rm(partial)
}

/** The cursor of the last whole row of this run; what is behind it, or of another run, is cut off. */
async function resume(handle: FileHandle, run: string): Promise<string | undefined> {
  const { size } = await handle.stat()
  const start = Math.max(0, size - TAIL_BYTES)
  const tail = Buffer.alloc(size - start)
  await handle.read(tail, 0, tail.length, start)
  const end = tail.lastIndexOf(NEW_LINE)
  const before = end > 0 ? tail.lastIndexOf(NEW_LINE, end - 1) : -1
  const isWhole = end >= 0 && (before >= 0 || start === 0)
  const row = isWhole ? parse(tail.subarray(before + 1, end).toString()) : undefined
  const goesOn = row?.run === run && typeof row.cursor === 'string'
  await handle.truncate(goesOn ? start + end + 1 : 0)
  return goesOn ? row.cursor : undefined
}

function parse(line: string): Partial<ResultRow> | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function isOfFile(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error
}

function unwritable(file: string, cause: Error): Failure {
  return new Failure(
    `${file} can’t be written: ${cause.message}`,
    'name a file in a directory that is there, with room for all rows',
    { cause },
  )
}
