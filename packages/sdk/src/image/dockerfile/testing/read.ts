/** For tests: a Dockerfile and the files beside it, and what they become. */
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import * as tar from 'tar-stream'
import type { ImageDescription } from '../../image.ts'
import type { DockerfileOptions, LocalStep } from '../../local-step.ts'
import { readDockerfile } from '../dockerfile.ts'

export interface Read {
  readonly base: unknown
  readonly steps: readonly unknown[]
  readonly notes: readonly string[]
}

/** What a Dockerfile becomes, with the names in each copied tar. */
export async function read(
  text: string,
  files: Readonly<Record<string, string | Uint8Array>> = {},
  options: DockerfileOptions = {},
): Promise<Read> {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'sandlot-dockerfile-'))
  for (const [name, content] of Object.entries({ Dockerfile: text, ...files })) {
    const path = join(directory.path, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, content)
  }
  const notes: string[] = []
  const path = join(directory.path, 'Dockerfile')
  const image = await readDockerfile(path, options, (line) => notes.push(line))
  return { ...(await plainOf(image)), notes }
}

export async function plainOf({
  base,
  steps,
}: ImageDescription): Promise<Pick<Read, 'base' | 'steps'>> {
  const plain: unknown[] = []
  for (const step of steps) plain.push(await plainStep(step))
  return { base, steps: plain }
}

async function plainStep(step: LocalStep): Promise<unknown> {
  if (step.kind === 'copyFrom') return { ...step, source: await plainOf(step.source) }
  if (step.kind !== 'copy') return step
  const { files, ...rest } = step
  const { bytes, file } = await files.tar()
  const parts: Uint8Array[] = []
  for await (const part of bytes) parts.push(part)
  return { ...rest, file, entries: await entriesOf(Buffer.concat(parts)) }
}

export async function entriesOf(bytes: Buffer): Promise<string[] | string> {
  if (bytes[0] === 0x1f) return 'gzip'
  const extract = tar.extract()
  extract.end(bytes)
  const names: string[] = []
  for await (const entry of extract) {
    const text: Uint8Array[] = []
    for await (const part of entry) text.push(part as Uint8Array)
    const { name, type } = entry.header
    names.push(type === 'file' ? `${name}: ${Buffer.concat(text).toString()}` : `${name} (${type})`)
  }
  return names
}
