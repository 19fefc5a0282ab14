/** `sandlot images verify`, `export`, `import`, `prune`. */
import { Image, Sandlot } from 'sandlot'
import { Mistake } from '../failure.ts'
import { counted, describeRemoved } from '../output/removed.ts'
import { note, printLine } from '../output/terminal.ts'
import { archiveKind } from './archive-kind.ts'
import { interruption } from './interruption.ts'
import { saveBytes } from './save-bytes.ts'

/** Returns 1 where a layer is damaged. */
export async function verifyImagesCommand(ids: readonly string[]): Promise<number> {
  await using client = new Sandlot()
  using interrupted = interruption()
  const { signal } = interrupted
  const all = [...ids]
  if (ids.length === 0) for await (const { id } of client.images.list({ signal })) all.push(id)
  let damaged = 0
  for (const id of all) {
    const problems = await client.images.verify(id, { signal })
    if (problems.length > 0) damaged += 1
    for (const { digest, problem } of problems) printLine(`${id}: ${digest} is ${problem}`)
  }
  note(`${all.length - damaged} of ${all.length} images are whole`)
  if (damaged > 0) note('remove a damaged one with `sandlot images remove ID`, and build it again')
  return damaged > 0 ? 1 : 0
}

export async function exportImageCommand(
  id: string,
  path: string,
  { format = 'oci' }: { readonly format?: 'oci' | 'tar' },
): Promise<void> {
  await using client = new Sandlot()
  using interrupted = interruption()
  const { signal } = interrupted
  await saveBytes(client.images.export(id, { format, signal }), path, { signal })
}

export async function importImageCommand(path: string): Promise<void> {
  const kind = await archiveKind(path).catch((cause: Error) => {
    throw new Mistake(`${path} can't be read: ${cause.message}`, 'check the path', { cause })
  })
  if (kind === undefined) {
    throw new Mistake(
      `${path} is no plain tar`,
      'say what it is: `sandlot images build oci PATH` or `sandlot images build tar PATH`',
    )
  }
  await using client = new Sandlot()
  using interrupted = interruption()
  const described = kind === 'oci' ? Image.oci(path) : Image.tar(path)
  const { id } = await client.images.build(described, { onLog: note, signal: interrupted.signal })
  printLine(id)
}

export async function pruneImagesCommand(options: {
  readonly all?: boolean
  readonly keep?: string
}): Promise<void> {
  if (options.keep !== undefined && !options.all) {
    throw new Mistake('--keep is about images', 'say --all with it')
  }
  await using client = new Sandlot()
  const answer = await client.images.prune(options)
  const { length } = answer.removed
  for (const id of answer.removed) printLine(id)
  const what = options.all
    ? counted(length, 'image', 'images')
    : counted(length, 'result of a build step', 'results of build steps')
  note(describeRemoved(answer, what))
}
