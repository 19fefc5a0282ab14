/** What has changed in a step's sandbox, as a layer; undefined where nothing has. */
import { type WrittenLayer, writeTarLayer } from '../tar-layer.ts'
import type { StepContext } from './apply.ts'
import type { StepMachine } from './machine.ts'
import { notKept } from './run-failure.ts'

export async function changedLayer(
  machine: StepMachine,
  { signal, layerPath, log }: StepContext,
): Promise<WrittenLayer | undefined> {
  try {
    const tar = machine.difference({ signal })
    const written = await writeTarLayer(tar, { path: layerPath, settled: true, onLog: log })
    return written.root.children.size === 0 ? undefined : written
  } catch (error) {
    signal.throwIfAborted()
    throw notKept(error) ?? (await machine.explain(error))
  }
}
