/** The npm package as a user gets it: built, packed, installed into an empty folder without a network, run on Node.js 20. */
import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startFakeDaemon } from './fake-daemon.ts'

const run = promisify(execFile)
const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url))
const FIXTURES = fileURLToPath(new URL('installed', import.meta.url))

let folder: string
let packed: readonly string[]

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-package-'))
  const built = join(folder, 'built')
  await run(process.execPath, [join(REPOSITORY, 'packages/sdk/build/build.ts'), built])
  const { stdout } = await run('npm', ['pack', built, '--json', '--pack-destination', folder])
  const [{ filename, files }] = JSON.parse(stdout) as [
    { filename: string; files: { path: string }[] },
  ]
  packed = files.map(({ path }) => path).sort()
  await writeFile(join(folder, 'package.json'), '{ "type": "module", "private": true }')
  const offline = ['--offline', '--no-audit', '--no-fund', '--ignore-scripts']
  await run('npm', ['install', ...offline, join(folder, filename)], { cwd: folder })
}, 120_000)
afterAll(async () => rm(folder, { recursive: true, force: true }))

test('holds what it needs and nothing else', async () => {
  expect(packed).toEqual([
    'LICENSE',
    'README.md',
    'THIRD-PARTY.txt',
    'index.d.ts',
    'index.js',
    'inside.js',
    'package.json',
    'python-child.py',
    'python-parent.py',
  ])
  const installed = join(folder, 'node_modules/sandlot')
  const manifest = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'))
  expect(manifest).not.toHaveProperty('dependencies')
  expect(manifest).not.toHaveProperty('private')
  const types = await readFile(join(installed, 'index.d.ts'), 'utf8')
  const imported = types.match(/^(import|export) .* from .*$/gm) ?? []
  expect(imported.filter((line) => !/ from "node:/.test(line))).toEqual([])
  const code = await readFile(join(installed, 'index.js'), 'utf8')
  const imports = [...code.matchAll(/^import .* from "(.*)";$/gm)].map(([, name]) => name)
  expect(imports.filter((name) => !name?.startsWith('node:'))).toEqual([])
})

test('runs a script, and lets it end', async () => {
  await using daemon = await startFakeDaemon()
  await daemon.image()
  const node = await oldestNode()
  const { stdout: version } = await run(node, ['--version'])
  process.stderr.write(`the npm package runs on Node.js ${version}`)
  await copyFile(join(FIXTURES, 'script.js'), join(folder, 'script.js'))
  const { stdout } = await run(node, ['script.js', join(daemon.directory, 'root.tar')], {
    cwd: folder,
    env: { ...process.env, SANDLOT_URL: daemon.url, SANDLOT_API_KEY: daemon.apiKey },
    timeout: 120_000,
  })
  expect(JSON.parse(stdout)).toEqual({
    stdout: 'text',
    streamed: 'streamed',
    refused: 'file_not_found',
    rewards: { a: 1, b: 1, c: 1 },
    disposable: true,
    unauthorized: 'unauthorized',
  })
})

test('has types that stand alone', async () => {
  await copyFile(join(FIXTURES, 'typed.ts'), join(folder, 'typed.ts'))
  const options = {
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    target: 'es2022',
    module: 'nodenext',
    lib: ['es2022', 'esnext.disposable'],
    types: ['node'],
    typeRoots: [join(REPOSITORY, 'node_modules/@types')],
  }
  const project = { compilerOptions: options, files: ['typed.ts'] }
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(project))
  const tsc = join(REPOSITORY, 'node_modules/typescript/bin/tsc')
  const checked = await run(process.execPath, [tsc, '-p', folder], { cwd: folder }).catch(
    (error: { stdout: string }) => error,
  )
  expect(checked.stdout).toBe('')
})

/** A Node.js 20 of this machine, else the one that runs the tests. */
async function oldestNode(): Promise<string> {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(directory, 'node')
    const version = await run(path, ['--version']).catch(() => undefined)
    if (version?.stdout.startsWith('v20.')) return path
  }
  return process.execPath
}
