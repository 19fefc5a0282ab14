import { expect, test } from 'vitest'
import { RefusedPacketsReader } from './refused-packets.ts'
import { Router } from './router.ts'

/** As `nft -j` says it. */
function listed(...targets: readonly (readonly [string, string, string, number])[]): string {
  const elem = targets.map((concat) => ({ elem: { val: { concat }, expires: 299 } }))
  const set = { family: 'inet', name: 'refused', ...(elem.length > 0 ? { elem } : {}) }
  return JSON.stringify({ nftables: [{ metainfo: { version: '1.0.6' } }, { set }] })
}

test('each target is told once, and again when it was forgotten meanwhile', async () => {
  const one = ['slabcdefgh', '10.0.0.1', 'tcp', 443] as const
  const other = ['slabcdefgh', '10.0.0.2', 'udp', 53] as const
  const answers = [listed(), listed(one), listed(one, other), '', listed(other), listed(one)]
  const router = new Router('abcde', '100.121.0.0/16')
  router.run = async () => {
    const stdout = answers.shift() ?? ''
    return stdout === '' ? { stdout, problem: 'no such table' } : { stdout }
  }
  const reader = new RefusedPacketsReader(router, 'abcde')
  const told: string[][] = []
  for (const _ of [...answers]) {
    const next = await reader.next()
    told.push(next.map(({ target, protocol }) => `${protocol} ${target}`))
  }
  expect(told).toEqual([
    [],
    ['tcp 10.0.0.1:443'],
    ['udp 10.0.0.2:53'],
    [],
    [],
    ['tcp 10.0.0.1:443'],
  ])
})
