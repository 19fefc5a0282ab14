import { sandboxCreate } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import type { ZodError } from 'zod'
import { issueLines } from './issue-lines.ts'

test.for([
  [{ memory: 'lots' }, /^body\.resources\.memory: "lots" is not a size such as '512MiB'/],
  [
    { memory: { request: '1GiB', limit: 'x' } },
    /^body\.resources\.memory\.limit: "x" is not a size/,
  ],
  [{ memory: true }, /^body\.resources\.memory: expected number or string or object$/],
  [{ cpu: -1 }, /^body\.resources\.cpu: Too small/],
  [{ cpu: 'two' }, /^body\.resources\.cpu: expected number or object$/],
  [
    { memory: { request: '2GiB', limit: '1GiB' } },
    /^body\.resources\.memory: the request is larger/,
  ],
  [{ pids: 1 }, /^body\.resources\.pids: Too small/],
] as const)('%j is refused with what is wrong', ([resources, line]) => {
  const { error } = sandboxCreate.safeParse({ from: 'im_x', resources })
  const lines = issueLines('body', error as ZodError)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(line)
})
