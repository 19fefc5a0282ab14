import type { BuildStep } from '@sandlot/protocol'
import { buildBench } from '@sandlot/testkit'
import { expect, test } from 'vitest'

const members = [
  { path: 'etc/passwd', content: 'me:x:7:8::/home/me:/bin/sh\n' },
  { path: 'home/me/', mode: 0o755 },
]
/** Braces of a variable, which no template of this file means. */
const of = (name: string) => `$\{${name}}`

test('user, working directory and copies know the variables of the image', async () => {
  await using at = await buildBench()
  const base = { kind: 'tar', blob: at.tar(members) } as const
  const expand = true
  const steps: BuildStep[] = [
    { kind: 'env', env: { WHO: 'me', HOME: '/home/me' } },
    { kind: 'user', user: `${of('WHO')}:${of('GROUP:-8')}`, expand },
    { kind: 'workdir', path: of('HOME'), expand },
    {
      ...{ kind: 'copy', blob: at.tar([{ path: 'f', content: 'f' }]) },
      ...{ to: `${of('HOME')}/to`, owner: of('WHO'), expand },
    },
    {
      ...{ kind: 'copyFrom', source: base, paths: ['/etc/passwd'] },
      ...{ to: `${of('HOME')}/copied`, owner: '5:6', expand },
    },
  ]
  const image = await at.build(base, steps)
  expect(image.config).toMatchObject({ user: 'me:8', workdir: '/home/me' })
  const lines = (await at.layers(image)).flat()
  expect(lines).toContainEqual(expect.stringMatching(/^home\/me\/to\/f file \S+ 7:8 /))
  expect(lines).toContainEqual(expect.stringMatching(/^home\/me\/copied file \S+ 5:6 /))
})

test.each<[step: BuildStep, says: RegExp]>([
  [{ kind: 'user', user: 'nobody:::' }, /steps\.0\.user not a user: write NAME or UID/],
  [{ kind: 'user', user: 'a b' }, /not a user/],
  [{ kind: 'user', user: ':7' }, /not a user/],
  [{ kind: 'user', user: '' }, /steps\.0\.user/],
  [{ kind: 'user', user: of('NOBODY'), expand: true }, /The user "" is the user is empty/],
  [{ kind: 'user', user: `${of('PATH')}:`, expand: true }, /The user "\/\S+ is not a user/],
  [{ kind: 'workdir', path: of('A:?say it'), expand: true }, /no value of "A": say it/],
])('%j is refused', async (step, says) => {
  await using at = await buildBench()
  const base = { kind: 'tar', blob: at.tar(members) } as const
  await expect(at.build(base, [step])).rejects.toMatchObject({
    code: 'image_source_invalid',
    message: expect.stringMatching(says),
  })
})
