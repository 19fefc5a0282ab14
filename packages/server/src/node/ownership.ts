import type { Engine } from '@sandlot/engine'
import {
  completeResourcesSchema,
  NETWORK_PHASES,
  phaseNetwork,
  secretUses,
} from '@sandlot/protocol'
import { z } from 'zod'
import { encodeJson } from '../json.ts'
import { kvRecords } from '../kv-records.ts'

/** What somebody's end of a sandbox can be. */
const STOP_KINDS = ['stopped', 'expired', 'shutdown', 'lost'] as const

const texts = z.record(z.string(), z.string())

/** Who wants a sandbox, and what it was made of: `kv sandbox/<id>`. */
export const ownershipRecord = z.object({
  sandbox: z.string(),
  node: z.string(),
  project: z.string(),
  owner: z.string(),
  epoch: z.number(),
  image: z.string(),
  resources: completeResourcesSchema,
  /** The image's and the owner's together. */
  env: texts,
  workdir: z.string(),
  user: z.string(),
  tags: texts,
  hostname: z.string(),
  keepWarmMs: z.number().nullable(),
  lifetimeMs: z.number().nullable(),
  /** What each phase may reach, and the phase it is in. */
  network: phaseNetwork.default({}),
  phase: z.enum(NETWORK_PHASES).default('agent'),
  /** What is put into its requests: names of secrets, no values. */
  secrets: secretUses.exactOptional(),
  /** Its agent holds the port of the way out, whatever the policies say: they were set while it ran. */
  wayOut: z.literal(true).exactOptional(),
  /** Address of a model that it finds on its loopback. */
  model: z.string().exactOptional(),
  /** Whether the API answers there, to tokens of sandboxes alone. */
  reachesApi: z.boolean().exactOptional(),
  /** To and from other hosts, as far as it is written down. */
  networkBytes: z.number().exactOptional(),
  createdAtMs: z.number(),
  /** Since when the stretch of its life is metered that goes on: its world is open. */
  meteredFromMs: z.number().exactOptional(),
  /** Its memory can be saved. */
  checkpointable: z.boolean().exactOptional(),
  /** What its owner named to start from, where that was not the image itself. */
  from: z.string().exactOptional(),
  /** The sandbox that it is a copy of. */
  parent: z.string().exactOptional(),
  /** Since when it is paused, or about to be: what is found dead with its memory on disk is paused. */
  pausedAtMs: z.number().exactOptional(),
  /** Its command `onRestore` has not ended: nobody was given it. */
  unready: z.literal(true).exactOptional(),
  /** How long it was paused in all, before that. */
  pausedMs: z.number().exactOptional(),
  /** It is being ended, and why: found dead it was not lost, and found alive it is ended. */
  stop: z
    .object({
      kind: z.enum(STOP_KINDS),
      detail: z.string(),
      untold: z.boolean().exactOptional(),
    })
    .exactOptional(),
  /** Where its streams can be reached. */
  endpoint: z.string(),
})
export type OwnershipRecord = z.infer<typeof ownershipRecord>

/** Why somebody ends a sandbox; `untold` where its owner did not ask for it, and has to be told. */
export type Stop = NonNullable<OwnershipRecord['stop']>

export const OWNERSHIP_PREFIX = 'sandbox/'

/**
 * The durable list of sandboxes that somebody wants. A record is there before anybody hears of the sandbox and is removed after it has
 * ended, so a sandbox without one is nobody's and may be ended.
 */
export class Ownership {
  readonly #engine: Engine

  constructor(engine: Engine) {
    this.#engine = engine
  }

  async put(record: OwnershipRecord): Promise<void> {
    await this.#engine.kv.put(OWNERSHIP_PREFIX + record.sandbox, encodeJson(record))
  }

  async remove(sandbox: string): Promise<void> {
    await this.#engine.kv.delete(OWNERSHIP_PREFIX + sandbox)
  }

  async list(): Promise<OwnershipRecord[]> {
    return await Array.fromAsync(kvRecords(this.#engine.kv, OWNERSHIP_PREFIX, ownershipRecord))
  }
}
