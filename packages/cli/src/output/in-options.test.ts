import { expect, test } from 'vitest'
import { inOptions } from './in-options.ts'

test.each([
  ['body.resources.memory: "lots" is not a size', '--memory: "lots" is not a size'],
  ['resources.memory: a limit of 1 MiB', '--memory: a limit of 1 MiB'],
  ['body.env.A: holds a NUL; body.network.allow.0: no', '--env A: holds a NUL; --allow: no'],
  ['body.expires: no; body.concurrency: too big', '--expires: no; --concurrency: too big'],
  [
    'body.network.limits.bytes: no; body.policy.limits.connections: no; body.policy.allow.1: no',
    '--bytes: no; --connections: no; --allow: no',
  ],
  ['request.cwd: not an absolute path', '--cwd: not an absolute path'],
  ['body.ready.port: too large', 'body.ready.port: too large'],
  [
    'the run a exists with other options; timeout.agent: 15m there, 5s here; grade.files./tests/a.py: a there, b here',
    'the run a exists with other options; --timeout agent: 15m there, 5s here; --grade-file /tests/a.py: a there, b here',
  ],
  [
    'body.secrets.API_KEY.hosts: "a.org" is not allowed',
    '--secret API_KEY.hosts: "a.org" is not allowed',
  ],
  ['body.value: is empty', 'the value: is empty'],
  ['the file env: is gone', 'the file env: is gone'],
])('%s', (message, said) => {
  expect(inOptions(message)).toBe(said)
})
