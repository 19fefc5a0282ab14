/** Ways to write an instruction. */
import { expect, test } from 'vitest'
import { read } from './testing/read.ts'

test('what the base image has is known to the daemon, where it can be asked', async () => {
  const { steps } = await read(`FROM a
ARG EXTRA
ENV LIBS=/opt/lib\${LIBS:+:$LIBS} EXTRA=\${EXTRA:-none}
WORKDIR \${HOME:-/root}/app
USER \${NB_UID}:\${NB_GID}
COPY --chown=$NB_UID Dockerfile \${HOME}/
COPY --from=b --chown=me /a /b/$HOME
`)
  expect(steps).toMatchObject([
    { kind: 'env', env: { LIBS: '/opt/lib${LIBS:+:${LIBS}}', EXTRA: 'none' }, expand: true },
    { kind: 'workdir', path: '${HOME:-/root}/app', expand: true },
    { kind: 'user', user: '${NB_UID}:${NB_GID}', expand: true },
    { kind: 'copy', to: '${HOME}/', owner: '${NB_UID}', expand: true },
    { kind: 'copyFrom', to: '/b/${HOME}', owner: 'me', expand: true },
  ])
})

test('words are read under either escape sign, and lines go on as they do for Docker', async () => {
  const backtick = '# syntax=x\n# ESCAPE=`\nFROM a\nENV A=c:\\d `\n  B=`$x\nRUN a\\\nRUN b'
  expect((await read(backtick)).steps).toEqual([
    { kind: 'env', env: { A: 'c:\\d', B: '$x' } },
    { kind: 'run', command: 'a\\' },
    { kind: 'run', command: 'b' },
  ])
  const { steps } = await read('FROM a\nRUN a \\\\\nRUN b \\ \n  # said\n\n c')
  expect(steps).toEqual([
    { kind: 'run', command: 'a \\\\' },
    { kind: 'run', command: 'b  c' },
  ])
})

test('here-documents in all their forms', async () => {
  const { steps } = await read(`FROM a
ARG N=1
RUN <<-EOF
\techo $N
\t\tEOF x
\tEOF
RUN cat <<my-file.txt && cat 3<<'two' <<<"no mark" "<<neither"
# kept
my-file.txt
$N
two
COPY <<run-me.sh <<-'.bashrc' <<E"O"F /etc/
$N
run-me.sh
\t$N
\t.bashrc
$N
EOF
RUN echo $((1<<2)) <<<x
RUN <<EOF
#!/usr/bin/env python3
print("$N")
EOF
COPY <<EOF /empty
EOF
`)
  const env = { N: '1' }
  const several = `cat <<my-file.txt && cat 3<<'two' <<<"no mark" "<<neither"
# kept
my-file.txt
$N
two`
  const python = expect.stringContaining('#!/usr/bin/env python3\nprint("$N")\n')
  expect(steps).toEqual([
    { kind: 'run', command: 'echo $N\nEOF x\n', env },
    { kind: 'run', command: several, env },
    {
      ...{ kind: 'copy', to: '/etc/', file: false },
      entries: ['run-me.sh: 1\n', '.bashrc: $N\n', 'EOF: $N\n'],
    },
    { kind: 'run', command: 'echo $((1<<2)) <<<x', env },
    { kind: 'run', command: python, env },
    { kind: 'copy', to: '/empty', file: true, entries: ['EOF: '] },
  ])
})

test('what is excluded from a copy is left out', async () => {
  const files = { 'd/a.md': 'a', 'd/b.py': 'b', 'd/e/c.md': 'c', 'f.md': 'f', 'g.py': 'g' }
  const { steps } = await read(
    'FROM a\nCOPY --exclude=*.md --exclude=e d *.md g.py /x/\nCOPY --exclude=**/*.md d /y',
    files,
  )
  expect(steps).toMatchObject([
    { to: '/x/', entries: ['b.py: b', 'g.py: g'] },
    { to: '/y', entries: ['b.py: b', 'e (directory)'] },
  ])
})
