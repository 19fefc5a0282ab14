import { z } from 'zod'
import type { RefusedPackets } from '../../driver.ts'
import { tableName } from './names.ts'
import type { Router } from './router.ts'
import { REFUSED } from './rules.ts'

/** As the rules know it: by the sandbox's link. */
export interface RefusedOnLink extends Omit<RefusedPackets, 'hostId'> {
  readonly link: string
}

const concat = z.tuple([z.string(), z.string(), z.enum(['tcp', 'udp']), z.number()])
const element = z.object({ elem: z.object({ val: z.object({ concat }) }) })
const listed = z.object({
  nftables: z.array(z.object({ set: z.object({ elem: z.array(element).optional() }).optional() })),
})

/** Tells of each target once, as long as packets to it keep coming. */
export class RefusedPacketsReader {
  readonly #router: Router
  readonly #table: string
  #told: ReadonlySet<string> = new Set()

  constructor(router: Router, tag: string) {
    this.#router = router
    this.#table = tableName(tag)
  }

  /** Those that were not told yet; none where there are no rules. */
  async next(): Promise<readonly RefusedOnLink[]> {
    const args = ['-j', 'list', 'set', 'inet', this.#table, REFUSED]
    const { stdout, problem } = await this.#router.run('nft', args)
    if (problem !== undefined) return []
    const found = new Map<string, RefusedOnLink>()
    for (const { set } of listed.parse(JSON.parse(stdout)).nftables) {
      for (const { elem } of set?.elem ?? []) {
        const [link, address, protocol, port] = elem.val.concat
        found.set(elem.val.concat.join(), { link, target: `${address}:${port}`, protocol })
      }
    }
    const told = this.#told
    this.#told = new Set(found.keys())
    return [...found].filter(([key]) => !told.has(key)).map(([, each]) => each)
  }
}
