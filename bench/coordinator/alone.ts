/** A coordinator and a node in this process, on the driver in memory and an engine on disk. */
import { join } from 'node:path'
import { openSqliteEngine, systemClock } from '@sandlot/engine'
import { FakeDriver, openImageStore } from '@sandlot/runtime'
import { MemoryBlobs, tarArchive } from '@sandlot/testkit'
import { pino } from 'pino'
import { Checkpoints, Coordinator, Node } from '../inside.ts'

export interface CoordinatorAlone extends AsyncDisposable {
  readonly coordinator: Coordinator
  /** An image that is there. */
  readonly image: string
  /** What it took to find out what an earlier one left, and to go on with it. */
  readonly recoveryMs: number
}

export const ROOM = { cpus: 1e6, memoryBytes: 2 ** 50, sandboxes: 100_000 } as const
export const CREATIONS_MAX = 1_024

export async function openCoordinator(directory: string): Promise<CoordinatorAlone> {
  await using opening = new AsyncDisposableStack()
  const engine = opening.use(await openSqliteEngine({ directory: join(directory, 'engine') }))
  const driver = opening.use(new FakeDriver())
  const blobs = new MemoryBlobs()
  const images = opening.use(
    await openImageStore({ directory: join(directory, 'images'), openBlob: blobs.open }),
  )
  const blob = blobs.put(tarArchive([{ path: 'etc/motd', content: 'bench\n' }]))
  const image = await images.build({ kind: 'tar', blob })
  const node = await Node.open({
    node: 'bench',
    endpoint: () => 'http://127.0.0.1',
    engine,
    driver,
    images,
    clock: systemClock,
    log: pino({ level: 'silent' }),
    room: ROOM,
    pool: { min: 0, max: 0, idleMs: 600_000 },
    creationsMax: CREATIONS_MAX,
    checkpoints: new Checkpoints(join(directory, 'checkpoints')),
  })
  const coordinator = opening.use(
    new Coordinator({
      engine,
      node,
      clock: systemClock,
      keeper: { keep: async () => {}, forget: async () => {} },
      imageDigest: async (id) => (await images.find(id))?.digest,
      warn: (message, error) => console.error(`bench: ${message}`, error),
    }),
  )
  const beginMs = performance.now()
  await node.recover()
  await coordinator.recover()
  const recoveryMs = performance.now() - beginMs
  const opened = opening.move()
  return {
    ...{ coordinator, image: image.id, recoveryMs },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
