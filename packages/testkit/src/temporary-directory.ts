import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A fresh directory that is gone with its scope. */
export async function temporaryDirectory(
  parent = tmpdir(),
): Promise<AsyncDisposable & { readonly path: string }> {
  await mkdir(parent, { recursive: true })
  const path = await mkdtemp(join(parent, 'sandlot-test-'))
  return {
    path,
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}
