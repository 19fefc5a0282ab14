import { randomBytes } from 'node:crypto'
import type { SandboxView } from '@sandlot/protocol'
import { Sandlot } from 'sandlot'
import type { Bench, BenchContext } from '../bench.ts'
import { Api } from '../daemon/api.ts'
import { BenchDaemon, type DaemonSetting, daemonSetting } from '../daemon/daemon.ts'
import { freePort } from '../daemon/free-port.ts'
import { leftovers } from '../daemon/leftovers.ts'
import { timed } from '../interleave.ts'
import { inLanes } from '../lanes.ts'
import { TRUE_COMMAND } from '../spec.ts'

const LIVE = 200
const IN_FLIGHT = 8
const ROUNDS = 3
const RESOURCES = {
  cpu: { request: 0.01, limit: 1 },
  memory: { request: '12MiB', limit: '256MiB' },
}

/** A daemon is killed with very many sandboxes alive: from the start of the next one until it serves, with all of them adopted. */
export const recover: Bench = async (context) => {
  const { id: from } = await context.image()
  const mark = `bench-${randomBytes(8).toString('hex')}`
  const options = { port: await freePort(), poolTarget: 0 }
  const setting = { ...(await daemonSetting(context, options)), mark }
  const bare: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const { daemon, seconds } = await startTimed(context, setting)
    // The first one makes the data directory, and what Node.js keeps of the sources.
    if (round > 0) bare.push(seconds)
    await daemon[Symbol.asyncDispose]()
  }
  let daemon = await BenchDaemon.start(context, setting)
  context.scope.defer(() => daemon[Symbol.asyncDispose]())
  using api = new Api(daemon, { connections: IN_FLIGHT })
  const ids: string[] = []
  const body = { from, resources: RESOURCES, keepWarm: '1h' }
  await inLanes(Array.from({ length: LIVE }), IN_FLIGHT, context, async () => {
    ids.push((await api.json<SandboxView>('POST', '/v1/sandboxes', body)).id)
  })
  const samples: number[] = []
  let adopted = LIVE
  for (let round = 0; round < ROUNDS; round++) {
    await daemon.kill()
    const started = await startTimed(context, setting)
    daemon = started.daemon
    samples.push(started.seconds)
    adopted = Math.min(adopted, await running(daemon))
  }
  const exec = (id: string) =>
    api.json<{ exitCode: number }>('POST', `/v1/sandboxes/${id}/exec`, { command: TRUE_COMMAND })
  await inLanes(ids, IN_FLIGHT, context, async (id) => {
    if ((await exec(id)).exitCode !== 0) throw new Error(`the adopted sandbox ${id} is not itself`)
  })
  await daemon[Symbol.asyncDispose]()
  const left = await leftovers(setting)
  for (const line of left) context.note(`recover: left: ${line}`)
  return [
    {
      name: 'recover',
      unit: 's',
      samples,
      reference: bare,
      target: { of: 'value', atMost: 3 },
      note: `from the start of the next daemon until it serves, ${LIVE} alive; the reference has none`,
    },
    {
      name: 'recover.adopted',
      unit: '',
      samples: [adopted],
      target: { of: 'value', atLeast: LIVE },
      note: 'the fewest of any round; then a command ran in each',
    },
    {
      name: 'recover.leaks',
      unit: '',
      samples: [left.length],
      target: { of: 'value', atMost: 0 },
      note: 'when the daemon was stopped',
    },
  ]
}

async function startTimed(context: BenchContext, setting: DaemonSetting) {
  const started: BenchDaemon[] = []
  const ms = await timed(async () => {
    started.push(await BenchDaemon.start(context, setting))
  })
  return { daemon: started[0] as BenchDaemon, seconds: ms / 1000 }
}

async function running(daemon: BenchDaemon): Promise<number> {
  await using client = new Sandlot(daemon)
  return (await Array.fromAsync(client.sandboxes.list({ state: 'running' }))).length
}
