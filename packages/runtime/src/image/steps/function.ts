/** The layer of a step that a client's function makes: what it changed in a sandbox that the client works in. */
import { completeResources } from '@sandlot/protocol'
import type { Image } from '../image.ts'
import type { WrittenLayer } from '../tar-layer.ts'
import type { StepContext, StepOf } from './apply.ts'
import { changedLayer } from './changed-layer.ts'

export async function functionLayer(
  step: StepOf<'function'>,
  parent: Image,
  context: StepContext,
): Promise<WrittenLayer | undefined> {
  const { key, call, network = 'none', project = '' } = step
  const client = { project, resources: completeResources(step.resources) }
  const { signal } = context
  for (;;) {
    await using machine = await context.openMachine({ image: parent, network, client }, { signal })
    const asked = { key, sandbox: machine.sandbox, ...(call === undefined ? {} : { call }) }
    // Whoever has the next turn begins with nothing of the one before.
    if (await context.callFunction(asked)) return await changedLayer(machine, context)
  }
}
