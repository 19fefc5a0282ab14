/** What tests of builds share: an image store whose steps run in sandboxes in memory. */
import { join } from 'node:path'
import type { BuildStep, ImageSource } from '@sandlot/protocol'
import {
  FakeDriver,
  type FakeScript,
  type Image,
  type ImageStore,
  type ImageStoreOptions,
  type OpenStepMachine,
  openImageStore,
  type SandboxSpec,
  type StepMachine,
  type StepMachineRequest,
} from '@sandlot/runtime'
import { listErofs } from './erofs-listing.ts'
import { MemoryBlobs } from './memory-blobs.ts'
import { type TarMember, tarArchive } from './tar-archive.ts'
import { temporaryDirectory } from './temporary-directory.ts'

export interface BuildBench extends AsyncDisposable {
  readonly store: ImageStore
  readonly blobs: MemoryBlobs
  readonly directory: string
  /** What each step asked for. */
  readonly machines: StepMachineRequest[]
  readonly driver: FakeDriver
  /** For another store of the same directory. */
  readonly openMachine: OpenStepMachine
  /** Digest of a tar. */
  tar(members: readonly TarMember[]): string
  build(base: ImageSource, steps: BuildStep[], onLog?: (line: string) => void): Promise<Image>
  /** `path kind mode uid:gid mtime content` of each layer above the base's. */
  layers(image: Image): Promise<string[][]>
}

const MIB = 2 ** 20
const limits = { memoryBytes: 256 * MIB, cpus: 1, pidsMax: 64, diskBytes: 64 * MIB, nofileMax: 256 }

export async function buildBench(
  script?: FakeScript,
  options: Partial<ImageStoreOptions> = {},
): Promise<BuildBench> {
  const stack = new AsyncDisposableStack()
  const directory = join(stack.use(await temporaryDirectory()).path, 'images')
  const blobs = new MemoryBlobs()
  const driver = stack.use(new FakeDriver(script ? { script } : {}))
  const machines: StepMachineRequest[] = []
  const openMachine = async (request: StepMachineRequest) => {
    machines.push(request)
    return await fakeMachine(driver, `sb_${String(machines.length).padStart(20, '0')}`)
  }
  const store = stack.use(
    await openImageStore({
      ...{ directory, openBlob: blobs.open, hasBlob: blobs.has, openMachine },
      ...options,
    }),
  )
  return {
    store,
    blobs,
    directory,
    machines,
    driver,
    openMachine,
    tar: (members) => blobs.put(tarArchive(members)),
    build: (base, steps, onLog) =>
      store.build({ kind: 'built', base, steps }, onLog ? { onLog } : {}),
    layers: async (image) => Promise.all(image.layers.slice(1).map(({ path }) => listErofs(path))),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

async function fakeMachine(driver: FakeDriver, id: string): Promise<StepMachine> {
  const spec: SandboxSpec = { id, layers: [], limits, hostname: 'build', detachedMs: 60_000 }
  const sandbox = await driver.create(spec)
  return {
    sandbox: id,
    guest: sandbox.guest,
    env: { PROXY: 'http://relay' },
    difference: (wait) => sandbox.guest.tar.difference('main', {}, wait),
    explain: async (error) => error,
    [Symbol.asyncDispose]: async () => {
      await driver.stop(sandbox)
    },
  }
}
