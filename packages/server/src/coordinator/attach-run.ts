import { type RunAttach, type RunAttached, SandlotError } from '@sandlot/protocol'
import type { FoundRun } from './find-run.ts'
import type { RunMemory } from './port.ts'
import { differencesOf, fieldsOf, sayDifferences } from './run-differences.ts'
import { completeSpecification, runsByItself, type Specification } from './specification.ts'

/** What somebody who attaches says that the run is; `from` is an image already. */
export interface Named extends RunAttach {
  readonly memory?: RunMemory
}

/** Refuses with `run_differs` where the run is not what is named. What is not named may be anything. */
export function checkNamed(
  { record }: FoundRun,
  named: Named,
  imageDigest: string | undefined,
): void {
  if (named.from !== undefined && imageDigest === undefined) {
    throw new SandlotError('image_unknown', `there is no image ${named.from}`)
  }
  const { specification, name } = record
  const { image, concurrency } = specification
  const requested = completeSpecification(
    { ...named, name, kind: 'worker', from: named.from ?? image, concurrency },
    imageDigest ?? specification.imageDigest,
  )
  const asked = new Set(Object.keys(named))
  const differences = differencesOf(specification, requested).filter(({ option }) =>
    asked.has(option.split(/[. ]/)[0] ?? ''),
  )
  if (differences.length === 0) return
  const message = `the run ${name} exists with other options; ${sayDifferences(differences)}`
  throw new SandlotError('run_differs', message, {
    hint: 'Attach with what the run was started with, or leave that out.',
    details: { fields: fieldsOf(differences) },
  })
}

/** What a worker of it has to bring. */
export function needsOf(specification: Specification): RunAttached['needs'] {
  const isByWorkers = !runsByItself(specification)
  return { episode: isByWorkers, grader: isByWorkers && specification.grade?.kind === 'worker' }
}
