/** A machine of fake programs for the set-up's tests: executables that note how they were called. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Place } from '../config.ts'
import type { Step } from '../setup/step.ts'

export interface FakeMachine {
  /** PATH names nothing but the fake programs. */
  readonly place: Place
  /** What was reported. */
  readonly reported: readonly string[]
  readonly step: Step
  /** Puts a program in place: a shell script, which has the machine's real tools at hand. Returns its path. */
  program(name: string, script: string): Promise<string>
  /** For a script: waits until a line was reported that begins with this word. */
  untilReported(word: string): string
  /** Command lines of the fake programs, in the order in which they were started. */
  calls(): Promise<readonly string[]>
}

export async function fakeMachine(
  directory: string,
  over: Partial<Place> = {},
): Promise<FakeMachine> {
  const bin = join(directory, 'bin')
  const log = join(directory, 'calls')
  const reported: string[] = []
  const markOf = (word: string) => join(directory, `reported-${encodeURIComponent(word)}`)
  await mkdir(bin)
  appendFileSync(log, '')
  return {
    place: {
      cacheDirectory: join(directory, 'cache'),
      nativeDirectory: join(directory, 'native'),
      cargoHome: join(directory, 'cache/cargo'),
      cargoConfig: join(directory, 'home/.cargo/config.toml'),
      searchPath: [join(directory, 'nowhere'), bin].join(delimiter),
      pythonIndex: 'http://127.0.0.1:1/simple',
      gvisorReleases: 'http://127.0.0.1:1/releases',
      ...over,
    },
    reported,
    step: {
      report(line) {
        reported.push(line)
        writeFileSync(markOf(line.split(' ')[0] ?? ''), '')
      },
    },
    untilReported: (word) => `until [ -e '${markOf(word)}' ]; do sleep 0.02; done`,
    async program(name, script) {
      const path = join(bin, name)
      await writeFile(path, `#!/bin/sh\necho "${name} $*" >>'${log}'\n${script}\n`)
      await chmod(path, 0o755)
      return path
    },
    async calls() {
      return (await readFile(log, 'utf8')).split('\n').filter((line) => line !== '')
    },
  }
}

/** A runsc as far as its version goes. */
export function runscScript(version: string): string {
  return `echo "runsc version ${version}"; echo "spec: 1.2.1"`
}
