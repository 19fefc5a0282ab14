import { expect, test } from 'vitest'
import { debianProgress } from './debian-progress.ts'

/** As mmdebstrap says it, with its paths cut. */
const SAID = [
  "I: chroot architecture amd64 is equal to the host's architecture",
  'I: finding correct signed-by value...',
  'I: using /images/tmp/1/root/mmdebstrap.2B3 as tempdir',
  'W: Download is performed unsandboxed as root as file /images/tmp/1/root/partial',
  'I: running apt-get update...',
  'I: downloading packages with apt...',
  'I: extracting archives...',
  'I: running --extract-hook in shell: sh -c apt-get --simulate install -- git exec /images',
  'I: installing essential packages...',
  'I: installing remaining packages inside the chroot...',
  'I: running --customize-hook in shell: sh -c sed exec /images/tmp/1/root',
  'I: cleaning package lists and apt cache...',
  'I: creating tarball...',
  'I: done',
  'I: success in 69.1936 seconds',
]

const told = (packages: readonly string[]) =>
  SAID.map(debianProgress('bookworm', packages)).filter((line) => line !== undefined)

test('a build is told in a few lines', () => {
  expect(told(['git', 'python3'])).toEqual([
    'reading the package lists of Debian bookworm',
    'downloading Debian bookworm',
    'unpacking Debian bookworm',
    'packages found: git, python3; installing Debian bookworm',
    'downloading and installing git, python3',
    'packing the image',
  ])
})

test('no packages are not named, and many are counted', () => {
  expect(told([]).join('\n')).toMatch(/^installing Debian bookworm\n/m)
  const many = Array.from({ length: 30 }, (_, n) => `p${n}`)
  expect(told(many)).toContain('downloading and installing p0, p1, p2, p3, p4 and 25 more')
})
