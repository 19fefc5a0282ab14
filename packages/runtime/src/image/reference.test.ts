import { expect, test } from 'vitest'
import { formatReference, isLoopback, parseReference } from './reference.ts'

const digest = `sha256:${'0'.repeat(64)}`

test.each([
  ['python', 'docker.io/library/python:latest'],
  ['python:3.12-slim', 'docker.io/library/python:3.12-slim'],
  ['owner/name', 'docker.io/owner/name:latest'],
  ['docker.io/python', 'docker.io/library/python:latest'],
  ['index.docker.io/python', 'docker.io/library/python:latest'],
  ['docker://ghcr.io/owner/name:v1', 'ghcr.io/owner/name:v1'],
  [`ghcr.io/owner/name@${digest}`, `ghcr.io/owner/name@${digest}`],
  [`python:3.12@${digest}`, `docker.io/library/python:3.12@${digest}`],
  ['localhost/name', 'localhost/name:latest'],
  ['localhost:5000/name', 'localhost:5000/name:latest'],
  ['registry:5000/a/b_c/d__e/f-g.h:T.a_g', 'registry:5000/a/b_c/d__e/f-g.h:T.a_g'],
  ['[::1]:5000/name', '[::1]:5000/name:latest'],
])('%s is %s', (text, full) => {
  const reference = parseReference(text)
  expect(formatReference(reference)).toBe(full)
  expect(parseReference(full)).toEqual(reference)
})

test.each([
  '',
  ':tag',
  'Python',
  'python:',
  'python:a b',
  'python@sha256:12',
  `python@${digest}@${digest}`,
  'python@md5:00000000000000000000000000000000',
  '../python',
  'a//b',
  '/a',
  'a/',
  '-python',
  '--help',
  'a:b:c',
  'host:port/name',
  'https://docker.io/python',
  `${'a'.repeat(300)}`,
  'name\n',
])('%j is refused', (text) => {
  expect(() => parseReference(text)).toThrow(
    expect.objectContaining({ code: 'image_source_invalid' }),
  )
})

test.each([
  ['localhost:5000/a', true],
  ['127.0.0.1:80/a', true],
  ['[::1]/a', true],
  ['127.example.org/a', false],
  ['localhost.example.org/a', false],
  ['a', false],
])('%s is on this machine: %s', (text, expected) => {
  expect(isLoopback(parseReference(text))).toBe(expected)
})
