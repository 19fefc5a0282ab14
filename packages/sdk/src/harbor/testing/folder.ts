import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** The least that a task folder has. */
export const LEAST = {
  'task.toml': 'version = "1.0"\n',
  'instruction.md': 'Do it.\n',
  'environment/Dockerfile': 'FROM debian:bookworm\n',
  'tests/test.sh': 'echo 1 > /logs/verifier/reward.txt\n',
}

export interface Folders extends AsyncDisposable {
  readonly path: string
}

/** A folder with these files. */
export async function folderOf(files: Readonly<Record<string, string>>): Promise<Folders> {
  const top = await mkdtemp(join(tmpdir(), 'sandlot-harbor-'))
  for (const [name, content] of Object.entries(files)) {
    const path = join(top, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, content)
  }
  return { path: top, [Symbol.asyncDispose]: () => rm(top, { recursive: true }) }
}

/** Files of one of several folders. */
export function below(folder: string, files: Readonly<Record<string, string>>) {
  return Object.fromEntries(
    Object.entries(files).map(([name, text]) => [`${folder}/${name}`, text]),
  )
}
