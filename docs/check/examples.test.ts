import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { promisify } from 'node:util'
import { codeBlocks, pages, top } from '@sandlot/testkit/repository'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const TYPECHECK_MS = 120_000
const LINES_MAX = 25

/** The example in the README is compared with the file by the drift test. */
test('every TypeScript block of every page passes the type check', {
  timeout: TYPECHECK_MS,
}, async () => {
  const all = (await Promise.all((await pages()).map(codeBlocks))).flat()
  const blocks = all.filter(({ language }) => language === 'ts')
  expect(blocks.length).toBeGreaterThan(4)
  const directory = await mkdtemp(join(tmpdir(), 'sandlot-docs-'))
  try {
    const names = new Map<string, string>()
    for (const [index, { page, line, text }] of blocks.entries()) {
      const file = `block-${index}.ts`
      names.set(file, `${page}:${line}`)
      await writeFile(join(directory, file), `${text}\nexport {}\n`)
    }
    // Modules that pages run functions of lie beside them.
    for (const name of ['reward.ts', 'episode.ts']) {
      await copyFile(join(top, 'examples', name), join(directory, name))
    }
    await writeFile(join(directory, 'package.json'), '{"type":"module"}')
    await writeFile(
      join(directory, 'tsconfig.json'),
      JSON.stringify(configuration([...names.keys()])),
    )
    const said = await typecheck(directory)
    const located = said.replaceAll(/block-\d+\.ts/g, (file) => `${names.get(file)} + `)
    expect(located).toBe('')
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})

test('the example of the README is short', async () => {
  const [example] = (await codeBlocks('README.md')).filter(({ language }) => language === 'ts')
  expect(example?.text.split('\n').length).toBeLessThanOrEqual(LINES_MAX)
})

test('the README shows what the demo printed', async () => {
  const captures = (await codeBlocks('README.md')).filter(({ language }) => language === 'text')
  const said = captures.map(({ text }) => text).join('\n')
  expect(said, 'paste the table of ./sandlot demo between the capture markers').toMatch(
    /^gold +graded 164 [\s\S]*^0 sandboxes left$/m,
  )
})

/** The repository's own options; packages are found as they are in it. */
function configuration(files: readonly string[]) {
  return {
    extends: join(top, 'tsconfig.json'),
    compilerOptions: {
      paths: { sandlot: [join(top, 'packages/sdk/src/index.ts')] },
      typeRoots: [join(top, 'node_modules/@types')],
    },
    include: [],
    files,
  }
}

async function typecheck(directory: string): Promise<string> {
  const compiler = join(top, 'node_modules/typescript/bin/tsc')
  try {
    await run(execPath, [compiler, '-p', '.'], { cwd: directory })
    return ''
  } catch (error) {
    const said = (error as { stdout?: string }).stdout || String(error)
    // The sources have a type check of their own.
    return said.replaceAll(/^\.\.\/.*\n/gm, '')
  }
}
