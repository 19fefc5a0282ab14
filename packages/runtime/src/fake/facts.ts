import type { CheckpointFacts, SandboxSpec } from '../driver.ts'

/** What a checkpoint of the driver in memory says of itself. */
export function factsOf({
  layers,
  limits,
}: Pick<SandboxSpec, 'layers' | 'limits'>): CheckpointFacts {
  const digests = layers.map(({ digest }) => digest)
  const machine = { format: 1, runtime: 'fake', cpuFeatures: 'fake', agent: 'fake' }
  return { ...machine, layers: digests, limits, sizeBytes: 1_024 }
}
