import { systemClock } from '@sandlot/engine'
import { completeResources, newId } from '@sandlot/protocol'
import { FakeDriver, type FakeDriverOptions } from '@sandlot/runtime'
import { pino } from 'pino'
import { Checkpoints } from '../node/checkpoints.ts'
import { Node } from '../node/node.ts'
import type { AcquireRequest } from '../node/port.ts'
import type { NodeOptions } from '../node/settings.ts'
import { openStores } from './stores.ts'

/** A node on a driver in memory, as a coordinator sees it. */
export async function openNode(
  options: FakeDriverOptions & { readonly node?: Partial<NodeOptions> } = {},
) {
  const stack = new AsyncDisposableStack()
  const { directory, engine, images, image } = await openStores(stack)
  const driver = new FakeDriver(options)
  const given: NodeOptions = {
    node: 'here',
    endpoint: () => 'http://here',
    engine,
    driver,
    images,
    clock: systemClock,
    log: pino({ level: 'silent' }),
    room: { cpus: 4, memoryBytes: 2 ** 32, sandboxes: 100 },
    pool: { min: 0, max: 0, idleMs: 600_000 },
    creationsMax: 4,
    checkpoints: new Checkpoints(`${directory}/checkpoints`),
    ...options.node,
  }
  const node = await Node.open(given)
  await node.recover()
  stack.defer(() => node.close('stop'))
  const request = (more: Partial<AcquireRequest> = {}): AcquireRequest => ({
    sandbox: newId('sandbox'),
    image: image.id,
    resources: completeResources(undefined),
    project: 'default',
    owner: 'run/key/1',
    epoch: 1,
    ...more,
  })
  return { node, driver, engine, request, given, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}
