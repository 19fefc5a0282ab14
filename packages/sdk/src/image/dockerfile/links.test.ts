/** Links of a build context: what is named is followed, within the context; what lies in a directory stays a link. */
import { mkdir, mkdtempDisposable, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { localCopy } from '../copied-files.ts'
import { readDockerfile } from './dockerfile.ts'
import { entriesOf, plainOf } from './testing/read.ts'

async function context() {
  const place = await mkdtempDisposable(join(tmpdir(), 'sandlot-links-'))
  const root = join(place.path, 'context')
  await mkdir(join(root, 'd', 'e'), { recursive: true })
  await writeFile(join(place.path, 'secret'), 'secret')
  await writeFile(join(root, 'file'), 'content')
  await writeFile(join(root, 'ignored'), 'ignored')
  await writeFile(join(root, 'd', 'e', 'deep'), 'deep')
  await writeFile(join(root, '.dockerignore'), 'ignored\nDockerfile\n.dockerignore\n')
  const links: Record<string, string> = {
    link: 'file',
    'd/up': '../file',
    'd/to-e': 'e',
    dirlink: 'd',
    absolute: '/d/e/deep',
    'link-to-link': 'link',
    out: '../secret',
    away: '/etc/passwd',
    'to-ignored': 'ignored',
    gone: 'nowhere',
    circle: 'circle',
  }
  for (const [name, target] of Object.entries(links)) await symlink(target, join(root, name))
  return {
    root,
    async read(text: string) {
      await writeFile(join(root, 'Dockerfile'), `FROM a\n${text}\n`)
      return (await plainOf(await readDockerfile(join(root, 'Dockerfile'), {}, () => {}))).steps
    },
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  }
}

test.each<[instruction: string, entries: string[]]>([
  ['COPY link /x', ['link: content']],
  ['COPY link-to-link /x/', ['link-to-link: content']],
  ['COPY d/up /x', ['up: content']],
  ['COPY dirlink/e/deep /x', ['deep: deep']],
  ['COPY d/to-e/deep /x', ['deep: deep']],
  ['COPY absolute /x', ['absolute: deep']],
  ['COPY dirlink/to-e /x', ['deep: deep']],
  ['COPY dirlink /x', ['e (directory)', 'e/deep: deep', 'to-e (symlink)', 'up (symlink)']],
  ['COPY lin* /x', ['link: content', 'link-to-link: content']],
  ['ADD link /x', ['link: content']],
])('%s', async (instruction, entries) => {
  await using at = await context()
  expect(await at.read(instruction)).toMatchObject([{ kind: 'copy', entries }])
})

test.each(['out', 'away', 'to-ignored', 'gone', 'circle', 'out/x', 'ignored', 'gon*'])(
  'COPY %s finds nothing of the context',
  async (source) => {
    await using at = await context()
    await expect(at.read(`COPY ${source} /x`)).rejects.toMatchObject({
      code: 'image_source_invalid',
      message: expect.stringContaining(`Dockerfile line 2: COPY finds no ${source} in`),
    })
  },
)

test('a copy of this machine’s files follows a link that it names', async () => {
  await using at = await context()
  const { file, bytes } = await localCopy(join(at.root, 'link'), '/x').tar()
  const parts = await Array.fromAsync(bytes)
  expect([file, await entriesOf(Buffer.concat(parts))]).toEqual([true, ['link: content']])
})
