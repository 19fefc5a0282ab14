import { ROUTES, type Route } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { namedBlobs } from './named-blobs.ts'

const digest = (digit: string) => `sha256:${digit.repeat(64)}`

test('digests are found where a body names them, and in nothing that is the client’s own', () => {
  const body = {
    kind: 'built',
    base: { kind: 'tar', blob: digest('a') },
    steps: [
      { kind: 'copy', blob: digest('b') },
      { kind: 'env', env: { blob: digest('c') } },
    ],
    files: [{ path: '/x', blob: digest('d') }],
    function: { bundle: digest('e') },
    tags: { bundle: digest('f') },
    tasks: [{ blob: 'no digest', json: JSON.stringify({ blob: digest('0') }) }],
  }
  expect([...namedBlobs(body)].sort()).toEqual(['a', 'b', 'd', 'e'].map(digest))
})

/** A request that came to name a content otherwise would not be checked. */
test('no body of a route names a content by another name', () => {
  for (const [name, { body }] of Object.entries<Route>(ROUTES)) {
    if (!(body instanceof z.ZodType)) continue
    const text = JSON.stringify(z.toJSONSchema(body, { io: 'input', unrepresentable: 'any' }))
    for (const [, property = ''] of text.matchAll(/"(\w*(?:blob|digest|bundle)\w*)":\{/gi)) {
      expect(['blob', 'bundle'], name).toContain(property)
    }
  }
})
