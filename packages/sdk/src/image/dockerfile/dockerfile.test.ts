import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { temporaryDirectory } from '@sandlot/testkit'
import * as tar from 'tar-stream'
import { expect, test } from 'vitest'
import { readDockerfile } from './dockerfile.ts'
import { plainOf, read } from './testing/read.ts'

const PYTHON = { kind: 'registry', reference: 'python:3.12' }

test('a Dockerfile as people write them', async () => {
  const { base, steps, notes } = await read(
    `# syntax=docker/dockerfile:1
ARG VERSION=3.12
FROM --platform=linux/amd64 python:\${VERSION} AS base
ARG EXTRA=dev
ENV A=1 B="two words" \\
    # said between
    C=$EXTRA
ENV OLD some value
ENV PATH=/opt/bin:$PATH PRICE=5\\$
WORKDIR $HOME/app
RUN pip install \\
  # the first
  foo \\

  bar
RUN ["echo", "a b"]
COPY requirements.txt .
COPY --chown=me:me --chmod=755 src/ /app/src
LABEL org.name="x y" v=$C
USER me
SHELL ["/bin/bash", "-c"]
ENTRYPOINT ["python3"]
CMD run it
EXPOSE 80
VOLUME /data
HEALTHCHECK CMD true
`,
    { 'requirements.txt': 'foo', 'src/a.py': 'a', 'src/b/c.py': 'c' },
  )
  expect(base).toEqual(PYTHON)
  expect(steps).toEqual([
    { kind: 'env', env: { A: '1', B: 'two words', C: 'dev' } },
    { kind: 'env', env: { OLD: 'some value' } },
    { kind: 'env', env: { PATH: '/opt/bin:${PATH}', PRICE: '5$$' }, expand: true },
    { kind: 'workdir', path: '${HOME}/app', expand: true },
    { kind: 'run', command: 'pip install   foo   bar', env: { EXTRA: 'dev' } },
    { kind: 'run', command: ['echo', 'a b'], env: { EXTRA: 'dev' } },
    { kind: 'copy', to: '.', file: true, entries: ['requirements.txt: foo'] },
    {
      kind: 'copy',
      to: '/app/src',
      file: false,
      owner: 'me:me',
      mode: 0o755,
      entries: ['a.py: a', 'b (directory)', 'b/c.py: c'],
    },
    { kind: 'labels', labels: { 'org.name': 'x y', v: 'dev' } },
    { kind: 'user', user: 'me' },
    { kind: 'shell', command: ['/bin/bash', '-c'] },
    { kind: 'command', entrypoint: ['python3'] },
    { kind: 'command', command: ['/bin/bash', '-c', 'run it'] },
  ])
  expect(notes).toEqual([
    'Dockerfile line 25: VOLUME has no effect in a sandbox',
    'Dockerfile line 26: HEALTHCHECK has no effect in a sandbox',
  ])
})

test('stages are a tree, of which only the needed ones are there', async () => {
  const text = `FROM python:3.12 AS build
ENV V=1
RUN make
FROM nobody AS unused
RUN false
FROM build
COPY --from=build /out/*.whl /wheels/
COPY --from=0 /etc/x /etc/x
COPY --from=busybox:1 /bin/busybox /bin/
RUN echo $V
`
  const build = {
    base: PYTHON,
    steps: [
      { kind: 'env', env: { V: '1' } },
      { kind: 'run', command: 'make' },
    ],
  }
  const { base, steps } = await read(text)
  expect(base).toEqual(PYTHON)
  expect(steps).toEqual([
    ...build.steps,
    { kind: 'copyFrom', source: build, paths: ['/out/*.whl'], to: '/wheels/' },
    { kind: 'copyFrom', source: build, paths: ['/etc/x'], to: '/etc/x' },
    {
      kind: 'copyFrom',
      source: { base: { kind: 'registry', reference: 'busybox:1' }, steps: [] },
      paths: ['/bin/busybox'],
      to: '/bin/',
    },
    { kind: 'run', command: 'echo $V' },
  ])
  expect(await read(text, {}, { target: 'BUILD' })).toMatchObject(build)
})

test('an id of the daemon’s is a base, and can be copied from', async () => {
  const id = `im_${'a'.repeat(20)}`
  const snapshot = `sn_${'b'.repeat(20)}`
  expect(await read(`FROM ${id}\nCOPY --from=${snapshot} /a /b`)).toMatchObject({
    base: { kind: 'id', id },
    steps: [{ kind: 'copyFrom', source: { base: { kind: 'id', id: snapshot }, steps: [] } }],
  })
})

test('here-documents', async () => {
  const { steps } = await read(`FROM scratch
ARG N=1
RUN <<EOF
echo "$N"
  # stays
EOF
RUN python3 <<'PY'
print('$N')
PY
COPY <<A <<"B" /dir/
n is $N
A
n is $N
B
COPY <<-one /etc/one
\tx
\tone
RUN true
`)
  const env = { N: '1' }
  expect(steps).toEqual([
    { kind: 'run', command: 'echo "$N"\n  # stays\n', env },
    { kind: 'run', command: "python3 <<'PY'\nprint('$N')\nPY", env },
    { kind: 'copy', to: '/dir/', file: false, entries: ['A: n is 1\n', 'B: n is $N\n'] },
    { kind: 'copy', to: '/etc/one', file: true, entries: ['one: x\n'] },
    { kind: 'run', command: 'true', env },
  ])
})

test('patterns, several sources and what is ignored', async () => {
  const files = {
    'a.txt': 'a',
    'b.txt': 'b',
    'c.md': 'c',
    'd/e.txt': 'e',
    '.dockerignore': 'b.*\nDockerfile',
  }
  const { steps } = await read('FROM scratch\nCOPY *.txt *.md /to\nCOPY . /all\nCOPY d /d', files)
  expect(steps).toEqual([
    { kind: 'copy', to: '/to/', file: false, entries: ['a.txt: a', 'c.md: c'] },
    {
      kind: 'copy',
      to: '/all',
      file: false,
      entries: [
        '.dockerignore: b.*\nDockerfile',
        'a.txt: a',
        'c.md: c',
        'd (directory)',
        'd/e.txt: e',
      ],
    },
    { kind: 'copy', to: '/d', file: false, entries: ['e.txt: e'] },
  ])
})

test('ADD unpacks archives of this machine, and copies the rest', async () => {
  const pack = tar.pack()
  pack.entry({ name: 'in' }, 'x')
  pack.finalize()
  const parts: Uint8Array[] = []
  for await (const part of pack as unknown as AsyncIterable<Uint8Array>) parts.push(part)
  const bytes = Buffer.concat(parts)
  const files = {
    'plain.tar': bytes,
    'packed.tgz': gzipSync(bytes),
    'text.gz': gzipSync('text'),
    'a.txt': 'a',
  }
  const { steps } = await read('FROM scratch\nADD plain.tar packed.tgz text.gz a.txt /to/', files)
  expect(steps).toEqual(
    [
      { kind: 'copy', to: '/to/', file: false, entries: ['in: x'] },
      { kind: 'copy', to: '/to/', file: false, entries: 'gzip' },
      { kind: 'copy', to: '/to/', file: false, entries: 'gzip' },
      { kind: 'copy', to: '/to/', file: false, entries: ['a.txt: a'] },
    ].map((step, index) => (index === 2 ? { ...step, entries: expect.anything() } : step)),
  )
})

test('the content of a step does not hang on times', async () => {
  await using directory = await temporaryDirectory()
  await writeFile(join(directory.path, 'a'), 'x')
  await symlink('a', join(directory.path, 'link'))
  const { steps } = await readAt(directory.path, 'FROM scratch\nCOPY . /x\n')
  expect(steps).toEqual([
    {
      kind: 'copy',
      to: '/x',
      file: false,
      entries: ['Dockerfile: FROM scratch\nCOPY . /x\n', 'a: x', 'link (symlink)'],
    },
  ])
})

async function readAt(directory: string, text: string) {
  await writeFile(join(directory, 'Dockerfile'), text)
  return await plainOf(await readDockerfile(join(directory, 'Dockerfile'), {}, () => {}))
}

test.each<[name: string, text: string, says: RegExp]>([
  ['nothing', '# only a comment\n', /holds no instruction/],
  ['no FROM', 'RUN true', /line 1: RUN stands before FROM/],
  ['an unknown instruction', 'FROM a\nFOO bar', /line 2: FOO is not supported/],
  ['ONBUILD', 'FROM a\n\nONBUILD RUN x', /line 3: ONBUILD is not supported/],
  ['a secret', 'FROM a\nRUN --mount=type=secret,id=x y', /line 2: RUN --mount=type=secret,id=x/],
  ['a host network', 'FROM a\nRUN --network=host y', /--network=host is not supported/],
  ['a URL', 'FROM a\nADD https://example.org/x /x', /ADD of https:\/\/example\.org\/x/],
  ['a missing file', 'FROM a\nCOPY nowhere /x', /line 2: COPY finds no nowhere in/],
  ['an unknown flag', 'FROM a\nCOPY --parents Dockerfile /x', /--parents/],
  ['no destination', 'FROM a\nCOPY Dockerfile', /needs a source and a destination/],
  ['a source by a variable of the base', 'FROM a\nCOPY $HOME/x /x', /line 2: COPY uses \$HOME, w/],
  ['a label by one', 'FROM a\nLABEL x=$HOME', /line 2: LABEL uses \$HOME, which/],
  ['a need that nothing meets', 'FROM a\nARG V\nENV A=${V:?say it}', /line 3: ENV needs V: say it/],
  ['a need before FROM', 'ARG V\nFROM a:${V:?which}', /line 2: FROM needs V: which/],
  ['an open quote', "FROM a\nENV A it's", /line 2: ENV has a ' that nothing ends/],
  ['an open brace', 'FROM a\nUSER ${A', /line 2: USER has a \$\{A that nothing ends/],
  [
    'another substitution',
    'FROM a\nARG A=b\nWORKDIR ${A^}',
    /line 3: WORKDIR holds "\$\{A\^\}", w/,
  ],
  [
    'a pattern on the base',
    'FROM a\nENV B=${PATH%x}',
    /line 2: ENV uses \$\{PATH%x\} of a variable/,
  ],
  ['a user that is none', 'FROM a\nUSER nobody:::', /line 2: USER "nobody:::" is not supported/],
  ['nobody at all', 'FROM a\nUSER', /line 2: USER names nothing/],
  ['an escape that is none', '# escape=x\nFROM a', /the Dockerfile says escape=x/],
  ['another platform', 'FROM --platform=linux/arm64 a', /--platform=linux\/arm64 is not supported/],
  ['no such stage', 'FROM a\nCOPY --from=3 /x /x', /no such stage/],
  [
    'an open here-document',
    'FROM a\nCOPY <<EOF /x\ntext\nUSER b',
    /line 2: COPY has a here-document without/,
  ],
  [
    'a RUN that is too long',
    `FROM a\nRUN <<EOF\n${'x'.repeat(2 ** 20)}\nEOF`,
    /line 2: RUN is longer than 1048576 bytes/,
  ],
  [
    'a list that is too long',
    `FROM a\n\nRUN ["echo", "${'x'.repeat(50_000)}"]`,
    /line 3: RUN is longer than 49152 bytes/,
  ],
  ['FROM of too much', 'FROM a b c d', /names no image/],
  ['FROM of an argument without a value', 'ARG BASE\nFROM $BASE', /\$BASE is empty/],
  ['a value that is missing', 'FROM a\nENV A', /gives A no value/],
])('%s is refused with its line', async (_, text, says) => {
  await expect(read(text)).rejects.toMatchObject({
    code: 'image_source_invalid',
    message: expect.stringMatching(says),
    hint: expect.any(String),
  })
})

test('each RUN gets its time', async () => {
  const { steps } = await read('FROM a\nRUN b\nRUN ["c"]', {}, { timeout: '5m' })
  expect(steps).toEqual([
    { kind: 'run', command: 'b', timeout: '5m' },
    { kind: 'run', command: ['c'], timeout: '5m' },
  ])
})

test('an ARG that nobody declares is told of, a target that is missing refused', async () => {
  expect(await read('FROM a', {}, { args: { X: '1' } })).toMatchObject({
    notes: ['no ARG of the Dockerfile is named X'],
  })
  await expect(read('FROM a AS b', {}, { target: 'c' })).rejects.toThrow(/no stage c/)
})
