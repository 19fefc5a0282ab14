import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { bundleModule } from './bundle.ts'

async function folder(files: Record<string, string>) {
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-bundle-'))
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true })
    await writeFile(join(directory, path), text)
  }
  return {
    url: (path: string) => pathToFileURL(join(directory, path)),
    path: (path: string) => join(directory, path),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  }
}

test('a module becomes one file with all that it imports', async () => {
  await using at = await folder({
    'main.ts': `import { two } from './two.ts'
      import { join } from 'node:path'
      import old from 'old'
      export const four = (): string => join('a', String(two + two)) + old.sep`,
    'two.ts': 'export const two: number = 2',
    'node_modules/old/index.js': `module.exports = { sep: require('path').sep }`,
  })
  const { code, label } = await bundleModule(at.url('main.ts'), 'four')
  expect(label).toBe('main.ts#four')
  await writeFile(at.path('out.mjs'), code)
  const module = await import(/* @vite-ignore */ at.url('out.mjs').href)
  expect(module.four()).toBe('a/4/')
  expect(await bundleModule(at.path('main.ts'), 'four')).toEqual({ code, label })
})

test.each([
  ['export const f = (', 'f', /main\.ts:1:\d+: Unexpected end of file/],
  ["import 'left-pad'; export const f = () => 1", 'f', /Could not resolve "left-pad"/],
  ["import './gone.ts'; export const f = () => 1", 'f', /Could not resolve ".\/gone.ts"/],
  ["import './x.node'; export const f = () => 1", 'f', /"\.\/x\.node" is a native module/],
  ['export const f = () => 1', 'g', /has no export g: its exports are f/],
  ['const x = 1', 'default', /has no export default: it has none/],
  ['export const f = 10', 'f', /the export f of .*main\.ts is a number, not a function/],
  ['export default { a: 1 }', 'default', /is an object, not a function/],
  ['const x = `a`; export { x as f }', 'f', /is text, not a function/],
])('what can’t be a function is refused: %s', async (text, name, message) => {
  await using at = await folder({ 'main.ts': text, 'x.node': '' })
  await expect(bundleModule(at.url('main.ts'), name)).rejects.toMatchObject({
    code: 'function_invalid',
    message: expect.stringMatching(message),
  })
})

test('what is missing is to be installed, and a file that is not there is named', async () => {
  await using at = await folder({ 'main.ts': "import '@scope/one/part'; export const f = 1" })
  await expect(bundleModule(at.url('main.ts'), 'f')).rejects.toMatchObject({
    hint: expect.stringMatching(/npm install @scope\/one$/),
  })
  await expect(bundleModule(at.url('gone.ts'), 'f')).rejects.toMatchObject({
    message: expect.stringContaining('gone.ts'),
    hint: 'There is no such file: check the path.',
  })
  await expect(bundleModule('https://example.org/f.ts', 'f')).rejects.toMatchObject({
    code: 'function_invalid',
  })
})
