import { type RunAttach, type RunAttached, SandlotError } from '@sandlot/protocol'
import type { FoundRun } from './find-run.ts'
import type { RunMemory } from './port.ts'
import {
  completeSpecification,
  differences,
  runsByItself,
  type Specification,
} from './specification.ts'

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
  const asked = new Set(Object.keys(named).flatMap((option) => FIELDS[option] ?? option))
  const fields = Object.fromEntries(
    Object.entries(differences(specification, requested)).filter(([field]) => asked.has(field)),
  )
  const different = Object.keys(fields)
  if (different.length === 0) return
  throw new SandlotError('run_differs', `the run ${name} has another ${different.join(', ')}`, {
    hint: 'Attach with what the run was started with, or leave that out.',
    details: { fields },
  })
}

/** Options whose fields have other names, as `differences` tells them. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  from: ['from', 'memory'],
  timeout: ['timeoutMs'],
}

/** What a worker of it has to bring. */
export function needsOf(specification: Specification): RunAttached['needs'] {
  const isByWorkers = !runsByItself(specification)
  return { episode: isByWorkers, grader: isByWorkers && specification.grade?.kind === 'worker' }
}
