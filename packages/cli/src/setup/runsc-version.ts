import { RUNSC_VERSIONS, type RunscVersion } from '@sandlot/protocol'
import { runProgram } from './program.ts'

const ANSWER_MS = 10_000

/** What a program says its version is, as runsc does; undefined for one that doesn't run or says something else. */
export async function runscVersion(
  path: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const options = { timeoutMs: ANSWER_MS, ...(signal ? { signal } : {}) }
  const { output } = await runProgram(path, ['--version'], options)
  return /runsc version (\S+)/.exec(output)?.[1]
}

export function isListed(version: string | undefined): version is RunscVersion {
  return (RUNSC_VERSIONS as readonly (string | undefined)[]).includes(version)
}
