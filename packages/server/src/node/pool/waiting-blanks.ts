import { diskMediumOf } from '@sandlot/protocol'
import type { Blank, BlankOptions, Layer, SandboxSpec, WorldAhead } from '@sandlot/runtime'
import { SERVER_LIMITS } from '../../limits.ts'
import type { Stock } from './shelf.ts'

/** What a blank is started with of the sandbox that it will become. */
export type Kit = Pick<BlankOptions, 'layers' | 'world'>

/** What is asked of a blank. */
export type Wanted = Pick<SandboxSpec, 'layers' | 'limits' | 'hostname'>

interface Waiting {
  readonly digests: ReadonlySet<string>
  /** Of its open world; undefined: it can become anything. */
  readonly sort: string | undefined
}

/**
 * The blanks that wait, longest first. They are made for those who come next, who are likely to want what the last one did: all have its
 * layers, and half of them its open world, so that a checkout has next to nothing to do. The other half can become anything.
 */
export class WaitingBlanks implements Stock<Kit, Wanted> {
  readonly #ready = new Map<Blank, Waiting>()
  #wanted: WorldAhead | undefined
  #sort = ''
  /** How many in a row wanted the same. */
  #alike = 0

  get size(): number {
    return this.#ready.size
  }

  /** What the next one should have, while `starting` are under way, to be `target` in all. */
  kitOfNext(starting: readonly Kit[], target: number): Kit {
    const world = this.#wanted
    if (!world) return {}
    const open = [...this.#ready.values()].filter(({ sort }) => sort !== undefined).length
    const opening = starting.filter((kit) => kit.world).length
    return open + opening < Math.floor(target / 2) ? { world } : { layers: world.layers }
  }

  add(blank: Blank, { world, layers = world?.layers ?? [] }: Kit): void {
    const sort = world && sortOf(world)
    this.#ready.set(blank, { digests: new Set(layers.map(({ digest }) => digest)), sort })
  }

  has(hostId: string): boolean {
    return [...this.#ready.keys()].some((blank) => blank.hostId === hostId)
  }

  /** False where it does not wait. */
  remove(blank: Blank): boolean {
    return this.#ready.delete(blank)
  }

  /** The one with the least left to do; undefined where none can become what is wanted. */
  take({ layers, limits, hostname }: Wanted): Blank | undefined {
    const sort = sortOf({ layers, limits, hostname })
    this.#alike = sort === this.#sort ? this.#alike + 1 : 1
    this.#sort = sort
    const few = layers.length <= SERVER_LIMITS.layersAhead
    this.#wanted = few ? { layers, limits, hostname } : undefined
    const blank =
      this.#find((waiting) => waiting.sort === sort) ??
      // For files on the disk there is no place in any other.
      (diskMediumOf(limits) === 'disk' ? undefined : this.#findAny(layers))
    if (blank) this.#ready.delete(blank)
    return blank
  }

  /** Takes out one that was made for somebody who doesn't come any more. */
  takeStale(): Blank | undefined {
    if (this.#alike < SERVER_LIMITS.takesAlike) return undefined
    const blank = this.#find(({ sort }) => sort !== undefined && sort !== this.#sort)
    if (blank) this.#ready.delete(blank)
    return blank
  }

  /** What can become anything stays longest. */
  takeSpare(): Blank | undefined {
    const blank = this.#find(({ sort }) => sort !== undefined) ?? this.#find(() => true)
    if (blank) this.#ready.delete(blank)
    return blank
  }

  /** What was wanted last can't be started ahead: its layers may be gone. */
  forgetWanted(): void {
    this.#wanted = undefined
  }

  #findAny(layers: readonly Layer[]): Blank | undefined {
    return (
      this.#find((waiting) => waiting.sort === undefined && hasAll(waiting.digests, layers)) ??
      this.#find((waiting) => waiting.sort === undefined)
    )
  }

  #find(suits: (waiting: Waiting) => boolean): Blank | undefined {
    for (const [blank, waiting] of this.#ready) if (suits(waiting)) return blank
    return undefined
  }
}

function sortOf({ layers, limits, hostname }: WorldAhead): string {
  return JSON.stringify([
    layers.map(({ digest }) => digest),
    Object.entries(limits).sort(),
    hostname,
  ])
}

function hasAll(digests: ReadonlySet<string>, layers: readonly Layer[]): boolean {
  return layers.every(({ digest }) => digests.has(digest))
}
