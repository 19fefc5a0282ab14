/** What no file of the repository may have. Each rule says what it found, as lines for a person. */
import { homedir } from 'node:os'
import { top } from './files.ts'

export interface Rule {
  readonly name: string
  readonly applies: (path: string) => boolean
  /** What is wrong with the file; empty where nothing is. */
  readonly find: (path: string, text: string) => readonly string[]
}

const LINES_MAX = 300

/** What may be longer, and by how much: a table, of which one looks at a row. */
const LONGER: Readonly<Record<string, number>> = {
  'packages/protocol/src/errors.ts': 500,
}

const DRAWERS = /^(utils?|helpers|common|types|managers?|misc)$/

/** Put together here, so that this file itself has none of them. */
const LATER = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX'].join('|')})\\b`, 'g')

const isScript = (path: string) => path.endsWith('.ts')
const isCode = (path: string) => /\.(ts|rs|py|sh)$|^sandlot$/.test(path)
export const isTest = (path: string) =>
  /\.test\.ts$|^e2e\/|\/(conformance|tests|testing|examples|fixtures)\//.test(path)

/** What a user runs: neither tests nor what only they use. */
const isProduct = (path: string) =>
  /^packages\/[a-z]+\/src\/.*\.ts$/.test(path) &&
  !isTest(path) &&
  !path.startsWith('packages/testkit/')

const STARTS_PROGRAMS =
  /^packages\/(runtime\/src\/process|cli\/src\/setup|sdk\/src\/local)\/|^packages\/cli\/src\/commands\/bench\.ts$/

export const RULES: readonly Rule[] = [
  {
    name: `no source is longer than ${LINES_MAX} lines`,
    applies: (path) => isCode(path) && !isTest(path),
    find: (path, text) => {
      const lines = productOf(text).split('\n').length - 1
      return lines > (LONGER[path] ?? LINES_MAX) ? [`${lines} lines`] : []
    },
  },
  {
    name: 'no drawer has a name that says nothing',
    applies: () => true,
    find: (path) =>
      path
        .split('/')
        .map((part) => part.replace(/\..*$/, ''))
        .filter((part) => part.split('-').some((word) => DRAWERS.test(word))),
  },
  {
    name: 'nothing is left for later',
    applies: () => true,
    find: (_, text) => text.match(LATER) ?? [],
  },
  {
    name: 'the lockfile names no download host',
    applies: (path) => path.endsWith('package-lock.json'),
    find: (_, text) => text.match(/"resolved": "\w+:\/\/[^"]*"/g) ?? [],
  },
  {
    name: 'only config.ts files read the environment',
    applies: (path) => isScript(path) && !isTest(path) && !/(^|\/)config\.ts$/.test(path),
    find: (_, text) =>
      withoutComments(text).match(/\bprocess\.env\b|\benv\b[^}\n]*} from 'node:process'/g) ?? [],
  },
  {
    name: 'no place of somebody’s machine is named',
    applies: () => true,
    find: (path, text) =>
      (isTest(path) ? [`${top}/`] : PLACES).filter((place) => text.includes(place)),
  },
  {
    name: 'only the output of the command line, benches and examples write to the console',
    applies: (path) =>
      isScript(path) && !/^(bench|examples)\/|^packages\/cli\/src\/output\//.test(path),
    find: (_, text) => withoutComments(text).match(/(?<![\w'`])console\.\w+\(/g) ?? [],
  },
  {
    name: 'only the output of the command line, and what functions print, goes to the terminal',
    applies: (path) =>
      isProduct(path) &&
      !path.startsWith('packages/cli/src/output/') &&
      path !== 'packages/sdk/src/function/print-line.ts',
    find: (_, text) => text.match(/\b(stdout|stderr)\.write\(/g) ?? [],
  },
  {
    name: 'programs are started where ARCHITECTURE.md says',
    applies: (path) => isProduct(path) && !STARTS_PROGRAMS.test(path),
    find: (_, text) => text.match(/from '(node:child_process|execa)'/g) ?? [],
  },
  {
    name: 'no test is run alone',
    applies: (path) => path.endsWith('.test.ts'),
    find: (_, text) => text.match(/\b(test|it|describe)\.only\b/g) ?? [],
  },
]

/** This checkout, and whoever's home it is read from. In a test root's home is that of a sandbox. */
const PLACES = [top, homedir(), '/ro' + 'ot']
  .filter((place) => place.length > 1)
  .map((place) => `${place}/`)

/** Tests within a Rust source are tests. */
function productOf(text: string): string {
  return text.split(/^#\[cfg\(test\)\]$/m)[0] ?? ''
}

function withoutComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '')
}
