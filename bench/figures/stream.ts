import type { SandboxView } from '@sandlot/protocol'
import { Sandlot } from 'sandlot'
import type { Bench } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { interleave, timed } from '../interleave.ts'
import { RawAgent } from '../raw/agent.ts'
import { RawMachine } from '../raw/machine.ts'
import { benchSpec } from '../spec.ts'

const MIB = 2 ** 20
const SIZE_BYTES = 64 * MIB
const PART = new Uint8Array(256 * 1024).fill(0x61)
const PATH = '/tmp/content'
/** Writes as fast as it is read, in large blocks. */
const WRITER = ['/usr/bin/head', '-c', String(SIZE_BYTES), '/dev/zero']

/** Bytes through SDK and daemon; the raw path reads and writes the same agent's FIFOs in this process. */
export const stream: Bench = async (context) => {
  const image = await context.image()
  const raw = await RawMachine.open(context)
  const setting = await daemonSetting(context, { poolTarget: 0 })
  const daemon = context.scope.use(await BenchDaemon.start(context, setting))
  const client = context.scope.use(new Sandlot(daemon))
  using api = new Api(daemon)
  const spec = benchSpec(image)
  const started = await raw.start('agent', spec)
  context.scope.defer(() => started.end())
  const agent = await RawAgent.attach(started.pipes)
  await agent.openWorld(spec)
  const { id } = await api.json<SandboxView>('POST', '/v1/sandboxes', { from: image.id })
  const sandbox = context.scope.use(await client.sandboxes.get(id))

  const before = daemon.memoryBytes().now
  await daemon.forgetPeak()
  const samples = await interleave(
    context,
    { max: 10 },
    {
      rawOutput: () => rate(() => readAll(agent.exec(WRITER, 'stream').read(1))),
      output: () => rate(() => sandboxOutput(sandbox.exec(WRITER, { stream: true }))),
      rawUpload: () => rate(() => rawUpload(agent)),
      upload: () => rate(async () => (await sandbox.files.write(PATH, content())).sizeBytes),
      rawDownload: () => rate(() => readAll(agent.open('file.read', where()).read(1))),
      download: () => rate(() => readAll(sandbox.files.readStream(PATH))),
    },
  )
  const growth = (daemon.memoryBytes().peak - before) / MIB
  const target = { of: 'ratio', atLeast: 0.7 } as const
  const figure = (name: string, ours: readonly number[], reference: readonly number[]) => ({
    ...{ name, unit: 'MiB/s', samples: ours, reference, target },
  })
  const rounds = samples.output.length + 1
  return [
    figure('stream.output', samples.output, samples.rawOutput),
    figure('stream.upload', samples.upload, samples.rawUpload),
    figure('stream.download', samples.download, samples.rawDownload),
    {
      name: 'stream.memory',
      unit: 'MiB',
      samples: [growth],
      note: `growth of the daemon’s peak while ${(3 * rounds * SIZE_BYTES) / MIB} MiB went through`,
    },
  ]
}

/** MiB each second of work that says how many bytes it moved. */
async function rate(work: () => Promise<number>): Promise<number> {
  let moved = 0
  const elapsedMs = await timed(async () => {
    moved = await work()
  })
  if (moved !== SIZE_BYTES) throw new Error(`${moved} bytes came of ${SIZE_BYTES}`)
  return SIZE_BYTES / MIB / (elapsedMs / 1000)
}

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<number> {
  let total = 0
  for await (const chunk of chunks) total += chunk.length
  return total
}

async function sandboxOutput(chunks: AsyncIterable<{ bytes: Uint8Array }>): Promise<number> {
  let total = 0
  for await (const { bytes } of chunks) total += bytes.length
  return total
}

async function rawUpload(agent: RawAgent): Promise<number> {
  const writing = agent.open('file.write', {
    ...where(),
    parents: true,
    append: false,
    exclusive: false,
  })
  for (let sent = 0; sent < SIZE_BYTES; sent += PART.length) await writing.send(0, PART)
  writing.end(0)
  return Number((await writing.done).sizeBytes)
}

function where() {
  return { world: 'main', path: new TextEncoder().encode(PATH) }
}

async function* content(): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < SIZE_BYTES; sent += PART.length) yield PART
}
