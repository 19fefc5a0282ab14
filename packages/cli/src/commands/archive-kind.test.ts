import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { ociLayout, tarArchive, temporaryDirectory } from '@sandlot/testkit'
import { expect, test } from 'vitest'
import { archiveKind } from './archive-kind.ts'

const tar = tarArchive([{ path: 'big', content: 'x'.repeat(5000) }, { path: 'blobs/oci-layout' }])

test.each([
  ['an OCI layout', ociLayout({ layers: [tar] }), 'oci'],
  ['a tar', tar, 'tar'],
  ['an empty tar', tarArchive([]), undefined],
  ['a compressed one', gzipSync(tar), undefined],
  ['a short file', Buffer.from('hello'), undefined],
] as const)('%s', async (_name, bytes, expected) => {
  await using directory = await temporaryDirectory()
  const path = join(directory.path, 'archive')
  await writeFile(path, bytes)
  expect(await archiveKind(path)).toBe(expected)
})
