import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BackupFile, Clock, Engine } from '@sandlot/engine'
import { type ImageStore, tarFile } from '@sandlot/runtime'
import type { Checkpoints } from '../node/checkpoints.ts'
import { VERSION } from '../version.ts'
import { imageFiles, memoryFiles } from './large-files.ts'
import {
  BACKUP_FORMAT,
  type BackedUpFile,
  type BackupHeader,
  DATA_PREFIX,
  FILES_NAME,
  HEADER_NAME,
} from './manifest.ts'

export interface BackupParts {
  readonly dataDirectory: string
  readonly engine: Engine
  readonly images: ImageStore
  readonly checkpoints: Checkpoints
  readonly clock: Pick<Clock, 'now'>
}

export interface ArchiveOptions {
  /** Images and saved memory too. Default: what can't be made again alone. */
  readonly images: boolean
  readonly signal: AbortSignal
}

/** Files of the daemon's own, beside its engine. Without the last the secrets in it are nothing. */
const OWN_FILES = ['key', 'signing-secret', 'secrets.key']

/** All that a daemon needs to go on elsewhere, as of one instant, while this one serves. */
export async function* backupArchive(
  parts: BackupParts,
  { images, signal }: ArchiveOptions,
): AsyncGenerator<Uint8Array> {
  const header: BackupHeader = {
    ...{ format: BACKUP_FORMAT, version: VERSION },
    ...{ createdAtMs: parts.clock.now(), images },
  }
  yield* textFile(HEADER_NAME, `${JSON.stringify(header)}\n`)
  const files: BackedUpFile[] = []
  for await (const file of everything(parts, { images, signal })) {
    signal.throwIfAborted()
    yield* member(file, (digest) => {
      files.push({ path: file.path, sizeBytes: file.sizeBytes, digest })
    })
  }
  yield* textFile(FILES_NAME, files.map((file) => `${JSON.stringify(file)}\n`).join(''))
  yield Buffer.alloc(1_024)
}

async function* everything(
  parts: BackupParts,
  { images, signal }: ArchiveOptions,
): AsyncGenerator<BackupFile> {
  const { engine, dataDirectory } = parts
  for await (const file of engine.backup({ signal })) {
    yield { ...file, path: `engine/${file.path}` }
  }
  for (const name of OWN_FILES) {
    const content = await readFile(join(dataDirectory, name)).catch(() => undefined)
    if (content) yield { path: name, sizeBytes: content.length, open: () => once(content) }
  }
  if (!images) return
  yield* imageFiles(parts)
  yield* memoryFiles(parts)
}

/** A file whose content is another length than was said would shift all behind it. */
async function* member(
  { path, sizeBytes, digest, open }: BackupFile,
  done: (digest: string) => void,
): AsyncGenerator<Uint8Array> {
  const hash = digest === undefined ? createHash('sha256') : undefined
  let left = sizeBytes
  async function* content() {
    for await (const bytes of open()) {
      left -= bytes.length
      if (left < 0) break
      hash?.update(bytes)
      yield bytes
    }
    if (left !== 0) throw new Error(`${path} changed while it was read`)
  }
  yield* tarFile(DATA_PREFIX + path, sizeBytes, content())
  done(digest ?? `sha256:${hash?.digest('hex')}`)
}

function textFile(path: string, text: string): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text)
  return tarFile(path, bytes.length, once(bytes))
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
