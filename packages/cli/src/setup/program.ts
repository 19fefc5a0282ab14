/** Starts the tools that the set-up needs: argument arrays, a deadline, bounded output. */
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { execa } from 'execa'
import { searchPath } from '../config.ts'

export interface ProgramOptions {
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** Gets each line of output as it comes. */
  readonly onLine?: (line: string) => void
}

export interface ProgramEnd {
  readonly ok: boolean
  readonly exitCode: number | undefined
  /** Both streams, the last 64 KiB of characters. */
  readonly output: string
}

const OUTPUT_CHARACTERS_MAX = 64 * 1024

/** Runs a program to its end. A program that fails is a result, one that can't be started too. */
export async function runProgram(
  file: string,
  argv: readonly string[],
  options: ProgramOptions,
): Promise<ProgramEnd> {
  const child = execa(file, argv, {
    all: true,
    buffer: false,
    reject: false,
    stdin: 'ignore',
    timeout: options.timeoutMs,
    env: { PATH: searchPath, ...options.env },
    ...(options.cwd ? { cwd: options.cwd } : {}),
  })
  let output = ''
  try {
    for await (const line of child.iterable({ from: 'all' })) {
      output = `${output}${line}\n`.slice(-OUTPUT_CHARACTERS_MAX)
      options.onLine?.(String(line))
    }
  } catch {
    // The end of the child says what happened.
  }
  const end = await child
  if (end.failed && output === '') output = end.shortMessage ?? ''
  return { ok: !end.failed, exitCode: end.exitCode, output }
}

/** The absolute path of a program on PATH, or undefined. */
export async function findProgram(name: string): Promise<string | undefined> {
  for (const directory of searchPath.split(delimiter)) {
    if (directory === '') continue
    const path = join(directory, name)
    try {
      await access(path, constants.X_OK)
      return path
    } catch {
      // Not here.
    }
  }
  return undefined
}
