/** `sandlot ps` and `sandlot sandbox …`. */
import { stdin } from 'node:process'
import { formatDuration, formatSize, isStartId } from '@sandlot/protocol'
import { Sandbox, type SandboxView, Sandlot, SandlotError } from 'sandlot'
import { Failure } from '../failure.ts'
import { hintFor } from '../output/hints.ts'
import { formatTable, formatTags } from '../output/table.ts'
import { note, printBytes, printErrorBytes, printJson, printLine } from '../output/terminal.ts'
import { nothingToStartFrom, parseFrom } from './from.ts'
import { interruption } from './interruption.ts'
import { networkChoiceOf } from './machine-options.ts'
import type { PolicyOptions } from './network.ts'
import { checkDuration, given, pairs } from './options.ts'
import { type ResourceOptions, resourcesOf } from './resource-options.ts'
import { secretsOf } from './secrets.ts'
import { noteStandstill } from './standstill.ts'

export interface ListOptions {
  readonly all?: boolean
  readonly json?: boolean
}

/** Lists sandboxes that live; with `all` also those that ended in the last hour. */
export async function psCommand({ all, json }: ListOptions): Promise<void> {
  await using client = new Sandlot()
  await noteStandstill(client)
  const views: SandboxView[] = []
  for await (const view of client.sandboxes.list()) views.push(view)
  if (all) for await (const view of client.sandboxes.list({ state: 'stopped' })) views.push(view)
  if (json) return printJson(views)
  if (views.length === 0) return note('no sandboxes')
  const nowMs = Date.now()
  const rows = views.map((view) => [
    view.id,
    view.state,
    formatDuration(nowMs - view.createdAtMs),
    view.image,
    formatSize(view.resources.memory.limit),
    view.owner,
    formatTags(view.tags),
    view.ending ? `${view.ending.kind}: ${view.ending.detail}` : '',
  ])
  const headings = ['ID', 'STATE', 'AGE', 'IMAGE', 'MEMORY LIMIT', 'OWNER', 'TAGS', 'ENDING']
  printLine(formatTable(headings, rows))
}

export async function showCommand(id: string): Promise<void> {
  await using client = new Sandlot()
  printJson(await (await client.sandboxes.get(id)).view())
}

export interface CreateOptions extends PolicyOptions, ResourceOptions {
  readonly from: string
  readonly env?: readonly string[]
  readonly keepWarm?: string
  readonly lifetime?: string
  readonly tag?: readonly string[]
  readonly openNetwork?: boolean
  readonly secret?: readonly string[]
  readonly checkpointable?: boolean
  readonly orCold?: boolean
}

/** Prints the id of the new sandbox. */
export async function createCommand(options: CreateOptions): Promise<void> {
  const { keepWarm, lifetime, checkpointable } = options
  const described = parseFrom(options.from)
  const wanted = {
    resources: resourcesOf(options),
    env: pairs(options.env ?? [], '--env'),
    tags: pairs(options.tag ?? [], '--tag'),
    ...given({ keepWarm, lifetime, checkpointable, network: networkChoiceOf(options) }),
    ...secretsOf(options.secret),
    ...(options.orCold ? ({ ifIncompatible: 'cold' } as const) : {}),
  }
  await using client = new Sandlot()
  using interrupted = interruption()
  const { signal } = interrupted
  const onLog = (line: string) => note(`image: ${line}`)
  const creating = client.sandboxes.create({ from: described, ...wanted, signal, onLog })
  const sandbox = await creating.catch((error) => {
    const isName = typeof described === 'string' && !isStartId(described)
    throw isName && isNoImage(error) ? nothingToStartFrom(described) : error
  })
  printLine(sandbox.id)
}

function isNoImage(error: unknown): boolean {
  return error instanceof SandlotError && error.code === 'image_unknown'
}

export interface ExecCommandOptions {
  readonly env?: readonly string[]
  readonly cwd?: string
  readonly user?: string
  readonly timeout?: string
}

/** Runs a command with this terminal's streams; its exit code is ours. */
export async function execCommand(
  id: string,
  argv: readonly string[],
  options: ExecCommandOptions,
): Promise<number> {
  await using client = new Sandlot()
  using interrupted = interruption()
  checkDuration(options.timeout, '--timeout')
  const sandbox = await client.sandboxes.get(id)
  const { cwd, user, timeout } = options
  const execution = sandbox.exec(argv, {
    stream: true,
    signal: interrupted.signal,
    env: pairs(options.env ?? [], '--env'),
    ...given({ cwd, user, timeout }),
    ...(stdin.isTTY ? {} : { stdin }),
  })
  for await (const { channel, bytes, droppedBytes } of execution) {
    if (droppedBytes > 0) note(`${droppedBytes} bytes of output were dropped here`)
    await (channel === 'stdout' ? printBytes : printErrorBytes)(bytes)
  }
  const { exitCode, signal, timedOut } = await execution.result
  if (timedOut) note(`the command was killed at its deadline (${timeout})`)
  return exitCode ?? 128 + (signal ?? 0)
}

export async function stopCommand(ids: readonly string[]): Promise<void> {
  await using client = new Sandlot()
  for (const id of ids) {
    const sandbox = await client.sandboxes.get(id)
    const { ending } = await sandbox.stop()
    printLine(`${id} ${ending?.kind ?? 'stopped'}`)
  }
}

/** Saves the memory of sandboxes, which then take no room. */
export async function pauseCommand(ids: readonly string[]): Promise<void> {
  await using client = new Sandlot()
  for (const id of ids) {
    const { state } = await (await client.sandboxes.get(id)).pause()
    printLine(`${id} ${state}`)
  }
}

/** Prints the ids of the copies; a copy that could not be made is said, and makes the code 1. */
export async function forkCommand(
  id: string,
  options: { count: number; kind: 'memory' | 'filesystem'; onRestore?: string },
): Promise<number> {
  await using client = new Sandlot()
  let failed = 0
  const { count, kind, onRestore } = options
  const sandbox = await client.sandboxes.get(id)
  for (const copy of await sandbox.fork(count, { kind, ...given({ onRestore }) })) {
    if (copy instanceof Sandbox) printLine(copy.id)
    else {
      failed += 1
      note(`a copy failed: ${copy.message} (${hintFor(copy)})`)
    }
  }
  return failed === 0 ? 0 : 1
}

export async function resumeCommand(ids: readonly string[]): Promise<void> {
  await using client = new Sandlot()
  for (const id of ids) {
    const { state } = await (await client.sandboxes.get(id)).resume()
    printLine(`${id} ${state}`)
  }
}

export interface LogsOptions {
  readonly exec?: string
}

/** What a sandbox's commands printed, as far as it is kept; without `exec` the list of them and how the sandbox ended. */
export async function logsCommand(id: string, { exec }: LogsOptions): Promise<void> {
  await using client = new Sandlot()
  const sandbox = await client.sandboxes.get(id)
  const { ending } = await sandbox.view()
  if (ending && exec !== undefined) {
    throw new Failure(
      `${id} has ended (${ending.kind}: ${ending.detail}), and what its commands printed with it`,
      'read output while the sandbox lives, or have the command write to a file and download that',
    )
  }
  if (ending) {
    printLine(`${id} ended: ${ending.kind}: ${ending.detail}`)
    return note('what its commands printed was kept in the sandbox, and ended with it')
  }
  if (exec !== undefined) {
    for await (const part of sandbox.output(exec)) await printBytes(part)
    return
  }
  const rows = (await sandbox.execs()).map((each) => [
    each.exec,
    each.running ? 'running' : 'ended',
    new Date(each.startedAtMs).toISOString(),
    String(each.processes),
    each.command,
  ])
  printLine(formatTable(['EXEC', 'STATE', 'STARTED', 'PROCESSES', 'COMMAND'], rows))
  note('read one with: sandlot sandbox logs ID --exec EXEC')
}
