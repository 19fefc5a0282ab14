/**
 * Builds the npm package `sandlot` into `dist/`: one JavaScript file without dependencies, and one that goes into the containers of
 * functions, one file of types, the graders' Python sources, README and licence. In this repository nobody uses it: the workspace runs the sources.
 *
 *     npm run build -w packages/sdk && npm pack packages/sdk/dist
 */
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { argv, stderr } from 'node:process'
import { fileURLToPath } from 'node:url'
import { type InputOptions, rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'

const PACKAGE = fileURLToPath(new URL('..', import.meta.url))
const REPOSITORY = join(PACKAGE, '../..')
/** What the first release of Node.js 20 understands. */
const TARGET = 'es2022'
/** Read at run time, beside the JavaScript. */
const PYTHON = ['python-parent.py', 'python-child.py']

/** What a bundled episode begins with, read where one is bundled. */
const INSIDE = 'inside.js'

const shared: InputOptions = {
  input: { index: join(PACKAGE, 'src/index.ts') },
  platform: 'node',
  checks: { pluginTimings: false },
  // Native parts of `ws` that it does without, and the bundler, which only functions need.
  external: [/^node:/, 'bufferutil', 'utf-8-validate', 'esbuild'],
  onLog(level, log, handle) {
    // Translations of a schema library's messages, of which no type is used.
    if (log.message.includes('/zod/v4/locales/')) return
    handle(level, log)
  },
}

/** The types' generator tells of each run. */
const QUIET = { info() {}, warn() {}, error: (text: unknown) => void stderr.write(`${text}\n`) }

await build(argv[2] ?? join(PACKAGE, 'dist'))

async function build(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true })
  await mkdir(directory, { recursive: true })
  await using code = await rolldown({ ...shared, transform: { target: TARGET } })
  const { output } = await code.write({ dir: directory, format: 'esm', codeSplitting: false })
  await using inside = await rolldown({
    ...shared,
    input: { inside: join(PACKAGE, 'src/function/inside.ts') },
    transform: { target: TARGET },
  })
  await inside.write({ dir: directory, format: 'esm', codeSplitting: false })
  await using types = await rolldown({
    ...shared,
    plugins: [dts({ dtsOnly: true, tsconfig: join(REPOSITORY, 'tsconfig.json'), logger: QUIET })],
  })
  await types.write({ dir: directory, format: 'esm' })
  await writeFile(join(directory, 'THIRD-PARTY.txt'), await noticesOf(output[0].moduleIds))
  for (const name of PYTHON) {
    await copyFile(join(PACKAGE, 'src/graders', name), join(directory, name))
  }
  await copyFile(join(PACKAGE, 'README.md'), join(directory, 'README.md'))
  await copyFile(join(REPOSITORY, 'LICENSE'), join(directory, 'LICENSE'))
  const manifest = JSON.stringify(await manifestOf(), null, 2)
  await writeFile(join(directory, 'package.json'), `${manifest}\n`)
}

/** Names and licences of the packages that became part of the file, as those licences ask. */
async function noticesOf(moduleIds: readonly string[]): Promise<string> {
  const packages = new Set<string>()
  for (const id of moduleIds) {
    const found = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1]
    if (found) packages.add(found)
  }
  const notices = await Promise.all([...packages].sort().map(noticeOf))
  return notices.join(`\n${'-'.repeat(80)}\n\n`)
}

async function noticeOf(directory: string): Promise<string> {
  const { name, version, license } = JSON.parse(
    await readFile(join(directory, 'package.json'), 'utf8'),
  )
  const file = (await readdir(directory)).find((each) => /^licen[cs]e/i.test(each))
  const text = file ? await readFile(join(directory, file), 'utf8') : ''
  return `${name} ${version} (${license})\n\n${text.trim()}\n`
}

async function manifestOf(): Promise<object> {
  const source = await readFile(join(PACKAGE, 'package.json'), 'utf8')
  const { name, version, license, description, dependencies } = JSON.parse(source)
  return {
    name,
    version,
    description,
    license,
    type: 'module',
    engines: { node: '>=20' },
    exports: { '.': { types: './index.d.ts', default: './index.js' } },
    types: './index.d.ts',
    peerDependencies: { esbuild: dependencies.esbuild },
    peerDependenciesMeta: { esbuild: { optional: true } },
    files: ['index.js', INSIDE, 'index.d.ts', 'THIRD-PARTY.txt', ...PYTHON],
  }
}
