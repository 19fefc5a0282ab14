import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'

/** Where a container has its function. */
export const FUNCTION_DIRECTORY = '/.sandlot/function'
export const RUNNER_PATH = `${FUNCTION_DIRECTORY}/main.mjs`
export const MODULE_PATH = `${FUNCTION_DIRECTORY}/module.mjs`

export interface RunnerFile {
  readonly path: string
  readonly content: Uint8Array
}

let files: Promise<readonly RunnerFile[]> | undefined

/** What runs in a container besides the function, as JavaScript. */
export function runnerFiles(): Promise<readonly RunnerFile[]> {
  files ??= Promise.all([
    javascript(new URL('./runner/main.ts', import.meta.url), RUNNER_PATH),
    javascript(
      new URL('./plain-json.ts', import.meta.resolve('@sandlot/protocol')),
      `${FUNCTION_DIRECTORY}/plain-json.mjs`,
    ),
  ])
  return files
}

async function javascript(source: URL, path: string): Promise<RunnerFile> {
  const text = stripTypeScriptTypes(await readFile(source, 'utf8'))
  return { path, content: Buffer.from(text) }
}
