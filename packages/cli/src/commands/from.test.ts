import { SandlotError } from '@sandlot/protocol'
import { Image } from 'sandlot'
import { expect, test } from 'vitest'
import { nothingToStartFrom, parseFrom } from './from.ts'

test.each([
  ...['im_aaaaaaaaaaaaaaaaaaaa', 'sn_aaaaaaaaaaaaaaaaaaaa', 'tp_aaaaaaaaaaaaaaaaaaaa'],
  ...['snapshot:prepared', 'template:env/v1', 'snapshot:it:s', 'prepared', 'my tests', 'a_b'],
])('%s goes to the daemon as it is', (text) => expect(parseFrom(text)).toBe(text))

test.each([
  ['debian:bookworm', Image.debian('bookworm')],
  ['debian:bookworm,python3,g++', Image.debian('bookworm', ['python3', 'g++'])],
  ['registry:python:3.12-slim', Image.registry('python:3.12-slim')],
  ['registry:localhost:5000/a/b@sha256:00', Image.registry('localhost:5000/a/b@sha256:00')],
  ['dockerfile:./Dockerfile', Image.dockerfile('./Dockerfile')],
  ['directory:/srv/root', Image.directory('/srv/root')],
  ['tar:it:s.tar', Image.tar('it:s.tar')],
  ['oci:layout', Image.oci('layout')],
])('%s', (text, image) => {
  expect(parseFrom(text)).toEqual(image)
})

test.each([
  ['dockerfile:./a/Dockerfile', Image.dockerfile('tasks/a/Dockerfile')],
  ['directory:/a', Image.directory('/a')],
  ['registry:a/b', Image.registry('a/b')],
])('%s that a file of a folder says', (text, image) => {
  expect(parseFrom(text, 'tasks')).toEqual(image)
})

test.each([
  ['bookworm', 'debian:bookworm'],
  ['trixie,git', 'debian:trixie,git'],
  ['Debian:bookworm', 'debian:bookworm'],
  ['debian:Bookworm', 'debian:bookworm'],
  ['debian:bookworm, python3', 'debian:bookworm,python3'],
  ['debian:bookworm python3', 'debian:bookworm,python3'],
  ['./Dockerfile', 'dockerfile:./Dockerfile'],
  ['Dockerfile.gpu', 'dockerfile:Dockerfile.gpu'],
  ['root.tar.gz', 'tar:root.tar.gz'],
  ['./root', 'directory:./root'],
])('%s is asked back: did you mean %s?', (text, meant) => {
  expect(refusal(text).hint).toContain(`Did you mean ${meant}? --from takes an id, `)
})

test.each([
  ['python:3.12-slim', 'registry:python:3.12-slim'],
  ['ghcr.io/a/b', 'registry:ghcr.io/a/b'],
  ['docker://alpine', 'registry:alpine'],
])('%s may be a name; where the daemon has none, %s was meant', (text, meant) => {
  expect(parseFrom(text)).toBe(text)
  expect(nothingToStartFrom(text).hint).toContain(`Did you mean ${meant}? --from takes an id, `)
})

test.each(['', 'debian:', 'snapshot:', 'sb_aaaaaaaaaaaaaaaaaaaa'])(
  '%o is refused with all that it may be',
  (text) => {
    const { code, hint } = refusal(text)
    expect(code).toBe('invalid_request')
    expect(hint).toMatch(/^--from takes an id/)
  },
)

function refusal(text: string): SandlotError {
  try {
    parseFrom(text)
  } catch (error) {
    if (error instanceof SandlotError) return error
  }
  throw new Error(`${text} was taken`)
}
