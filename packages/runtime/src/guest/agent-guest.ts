import type { PayloadMap } from '@sandlot/protocol/frames'
import type { VetEnd } from './agent-exec.ts'
import { AgentExecs } from './agent-execs.ts'
import { AgentFiles } from './agent-files.ts'
import { AgentPorts } from './agent-ports.ts'
import { AgentRelay } from './agent-relay.ts'
import { AgentTars } from './agent-tars.ts'
import type {
  Guest,
  GuestConfiguration,
  GuestExecs,
  GuestFiles,
  GuestHello,
  GuestIdentity,
  GuestNews,
  GuestProcess,
  GuestStats,
  GuestTars,
  GuestWait,
  WorldEnder,
  WorldSpec,
} from './guest.ts'
import type { GuestLost } from './guest-error.ts'
import type { GuestPorts } from './guest-ports.ts'
import type { GuestRelay } from './guest-relay.ts'
import { toBytes, toPath } from './guest-text.ts'
import { GUEST_LIMITS } from './limits.ts'
import type { GuestLink } from './link.ts'
import * as messages from './messages.ts'
import { NewsQueue } from './news-queue.ts'
import { USERS_REVISION } from './revision.ts'

/** The client of one agent: every call is one request on its link. */
export class AgentGuest implements Guest {
  readonly hello: GuestHello
  readonly lost: Promise<GuestLost>
  readonly exec: GuestExecs
  readonly files: GuestFiles
  readonly tar: GuestTars
  readonly relay: GuestRelay
  readonly ports: GuestPorts
  readonly #link: GuestLink

  constructor(link: GuestLink, hello: GuestHello, vetEnd?: VetEnd) {
    this.#link = link
    this.hello = hello
    this.lost = link.lost
    this.exec = new AgentExecs(link, vetEnd)
    this.files = new AgentFiles(link)
    this.tar = new AgentTars(link)
    this.relay = new AgentRelay(link)
    this.ports = new AgentPorts(link)
  }

  async configure(options: GuestConfiguration, wait: GuestWait = {}): Promise<void> {
    const { sandbox, detachedMs, lifetimeMs } = options
    const args = { sandbox, detachedMs, lifetimeMs }
    await this.#link.request('configure', args, messages.nothing, wait)
  }

  async freeze(wait: GuestWait = {}): Promise<void> {
    await this.#link.request('freeze', {}, messages.nothing, wait)
    this.#link.expectSilence()
  }

  async thaw(identity?: GuestIdentity, wait: GuestWait = {}): Promise<void> {
    this.#link.watchSilence()
    await this.#link.request('thaw', thawArguments(identity), messages.nothing, wait)
    this.#link.watchSilence()
  }

  async prepareWorld(world: string, wait: GuestWait = {}): Promise<{ elapsedUs: number }> {
    return await this.#link.request('world.prepare', { world }, messages.worldReady, wait)
  }

  async openWorld(spec: WorldSpec, wait: GuestWait = {}): Promise<{ elapsedUs: number }> {
    if (spec.userPidsMax !== undefined) {
      this.#link.requireRevision(USERS_REVISION, 'a limit of processes for each user')
    }
    return await this.#link.request('world.open', worldArguments(spec), messages.worldReady, wait)
  }

  async endWorld(
    world: string,
    wait: GuestWait = {},
  ): Promise<{ elapsedUs: number; by: WorldEnder }> {
    const { timeoutMs = GUEST_LIMITS.requestMs } = wait
    return await this.#link.request('world.end', { world, timeoutMs }, messages.worldEnd, {
      ...wait,
      timeoutMs: timeoutMs + GUEST_LIMITS.answerGraceMs,
    })
  }

  watch(wait: Pick<GuestWait, 'signal'> = {}): AsyncIterable<GuestNews> {
    return new NewsQueue(this.#link, this.#link.open('watch', {}, wait))
  }

  async stats(wait: GuestWait = {}): Promise<GuestStats> {
    return await this.#link.request('stats', {}, messages.stats, wait)
  }

  async processes(world: string, wait: GuestWait = {}): Promise<readonly GuestProcess[]> {
    const listed = await this.#link.request('process.list', { world }, messages.processes, wait)
    return listed.processes
  }

  async close(): Promise<void> {
    await this.#link.close()
  }
}

function thawArguments(identity: GuestIdentity | undefined): PayloadMap {
  if (!identity) return {}
  const { sandbox, detachedMs, lifetimeMs, hostname, relayPort } = identity
  return { sandbox, detachedMs, lifetimeMs, hostname, relayPort }
}

function worldArguments(spec: WorldSpec): PayloadMap {
  const { world, below, disk, upperBytes, upperInodes, shmBytes, pidsMax, nofileMax } = spec
  const { fileBytesMax, hostname, memoryTotalBytes, cpus, hosts, identity } = spec
  const { userPidsMax, nameServers, devices, given } = spec
  return {
    world,
    below,
    disk,
    layers: spec.layers.map(toPath),
    upperBytes,
    upperInodes,
    shmBytes,
    pidsMax,
    userPidsMax,
    nofileMax,
    fileBytesMax,
    hostname,
    memoryTotalBytes,
    cpus,
    hosts: hosts === undefined ? undefined : toBytes(hosts),
    resolv: nameServers === undefined ? undefined : toBytes(nameServers),
    devices: devices?.map(toBytes),
    given: given?.map(toPath),
    identity,
  }
}
