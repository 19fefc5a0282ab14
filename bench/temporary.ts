import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import type { BenchContext } from './bench.ts'

/** A fresh directory on a disk, gone with the bench. */
export async function temporaryDirectory({ scope }: BenchContext): Promise<string> {
  const path = await mkdtemp('/var/tmp/sandlot-bench-')
  scope.defer(() => rm(path, { recursive: true, force: true }))
  return path
}

/** A fresh directory with a short path below /run, gone with the bench; its last name is also that of its cgroups. */
export async function stateDirectory({ scope }: BenchContext): Promise<string> {
  const path = `/run/sandlot-bench-${randomBytes(3).toString('hex')}`
  await mkdir(path, { mode: 0o700 })
  scope.defer(() => rm(path, { recursive: true, force: true }))
  return path
}
