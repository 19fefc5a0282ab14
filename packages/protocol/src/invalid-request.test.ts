import { expect, test } from 'vitest'
import type { ZodError } from 'zod'
import { invalidRequest } from './invalid-request.ts'
import { sandboxCreate } from './sandbox.ts'

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
  const { code, message } = invalidRequest('body', error as ZodError)
  expect(code).toBe('invalid_request')
  expect(message).toMatch(line)
  expect(message).not.toContain('; ')
  expect(`body.${invalidRequest('', error as ZodError).message}`).toBe(message)
})

test('many faults are counted, the first ones said', () => {
  const { error } = sandboxCreate.safeParse({ from: 1, a: 1, env: 1, tags: 1, user: 1, workdir: 1 })
  const { message } = invalidRequest('body', error as ZodError)
  expect(message).toMatch(/^body\.from: .*; body\..*; and 1 more$/)
})
