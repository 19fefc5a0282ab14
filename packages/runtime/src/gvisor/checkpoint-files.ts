/**
 * The directory of a checkpoint:
 *
 * ```
 * checkpoint.img  pages_meta.img  pages.img   the runtime's
 * identity                                    what tells its sandbox from copies (identity-image.ts)
 * facts.json                                  what a restore needs, and size and checksum of each of the others; written last
 * ```
 * It is made beside its place and moved there, so whoever finds it finds it whole.
 */
import { open, readdir, readFile, rename, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { crc32 } from 'node:zlib'
import { z } from 'zod'
import { type CheckpointFacts, DriverError } from '../driver.ts'
import { RUNTIME_LIMITS } from '../limits.ts'
import { refuseOtherFormat } from './compatible.ts'
import { sandboxLimits } from './stored-limits.ts'

const FACTS = 'facts.json'
const READ_BYTES = 2 ** 20

const size = z.number().int().nonnegative()
const file = z.strictObject({ name: z.string(), sizeBytes: size, crc32: size })
const schema = z.strictObject({
  format: size,
  runtime: z.string(),
  cpuFeatures: z.string(),
  agent: z.string(),
  layers: z.array(z.string()),
  limits: sandboxLimits,
  /** Whose it is. */
  sandbox: z.string(),
  sizeBytes: size,
  files: z.array(file),
})
type StoredFacts = z.infer<typeof schema>
const formatted = z.object({ format: size })

/** Brings all to the disk, adds the facts, and moves the directory to its place. */
export async function seal(
  part: string,
  directory: string,
  sandbox: string,
  facts: Omit<CheckpointFacts, 'sizeBytes'>,
): Promise<CheckpointFacts> {
  const names = await readdir(part)
  const files = await Promise.all(names.sort().map((name) => settle(part, name)))
  const sizeBytes = files.reduce((sum, each) => sum + each.sizeBytes, 0)
  await writeDurably(join(part, FACTS), JSON.stringify({ ...facts, sandbox, sizeBytes, files }))
  await syncDirectory(part)
  await rename(part, directory)
  await syncDirectory(dirname(directory))
  return { ...facts, sizeBytes }
}

/** Fails with `snapshot_incompatible` where something of it is missing or shorter than it was. */
export async function readFacts(directory: string): Promise<StoredFacts> {
  const facts = await parseFacts(directory)
  for (const { name, sizeBytes } of facts.files) {
    const found = await stat(join(directory, name)).catch(() => undefined)
    if (found?.size === sizeBytes) continue
    throw damaged(`${name} has ${found?.size ?? 'no'} of ${sizeBytes} bytes`)
  }
  return facts
}

/** Reads everything; for a checkpoint that could not be restored. */
export async function findDamage(directory: string): Promise<DriverError | undefined> {
  const facts = await readFacts(directory).catch((error) => error)
  if (facts instanceof DriverError) return facts
  for (const { name, crc32: expected } of (facts as StoredFacts).files ?? []) {
    const found = await checksum(join(directory, name)).catch(() => undefined)
    if (found !== expected) return damaged(`${name} is not what was written`)
  }
  return undefined
}

async function parseFacts(directory: string): Promise<StoredFacts> {
  try {
    const text = await readFile(join(directory, FACTS), 'utf8')
    if (text.length > RUNTIME_LIMITS.checkpointFactsBytesMax) throw new Error('too long')
    const facts = JSON.parse(text)
    // Another format may have other facts.
    refuseOtherFormat(formatted.parse(facts).format)
    return schema.parse(facts)
  } catch (error) {
    if (error instanceof DriverError) throw error
    throw damaged(`${FACTS} can't be read`, error)
  }
}

async function settle(directory: string, name: string): Promise<StoredFacts['files'][number]> {
  const path = join(directory, name)
  const sum = await checksum(path)
  await using handle = await open(path, 'r')
  await handle.sync()
  return { name, sizeBytes: (await handle.stat()).size, crc32: sum }
}

async function checksum(path: string): Promise<number> {
  await using handle = await open(path, 'r')
  const buffer = Buffer.allocUnsafe(READ_BYTES)
  let sum = 0
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, READ_BYTES)
    if (bytesRead === 0) return sum
    sum = crc32(buffer.subarray(0, bytesRead), sum)
  }
}

async function writeDurably(path: string, text: string): Promise<void> {
  await using handle = await open(path, 'w', 0o600)
  await handle.writeFile(text)
  await handle.sync()
}

async function syncDirectory(path: string): Promise<void> {
  await using handle = await open(path, 'r')
  await handle.sync()
}

function damaged(detail: string, cause?: unknown): DriverError {
  return new DriverError('snapshot_incompatible', `the checkpoint is damaged: ${detail}`, {
    hint: "take the snapshot again, or start cold from its files: ifIncompatible 'cold', --or-cold",
    cause,
  })
}
