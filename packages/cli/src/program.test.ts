import { CommanderError } from 'commander'
import { beforeEach, expect, test, vi } from 'vitest'
import { makeProgram } from './program.ts'

/** Each verb's function, with what it was called with. */
const called = vi.hoisted(() => [] as { name: string; arguments: unknown[] }[])

const fakes = vi.hoisted(() => {
  const names: Record<string, readonly string[]> = {
    demo: ['demoCommand'],
    serve: ['serveCommand'],
    doctor: ['doctorCommand'],
    'doctor-tasks': ['doctorTasksCommand'],
    setup: ['setupCommand'],
    test: ['testCommand'],
    bench: ['benchCommand'],
    sandboxes: ['psCommand', 'createCommand', 'execCommand', 'stopCommand', 'logsCommand'],
    images: ['listImagesCommand', 'buildImageCommand', 'removeImageCommand'],
    artifacts: ['artifactsCommand'],
    'watch-run': ['watchRunCommand'],
    results: ['resultsCommand'],
    episodes: ['listEpisodesCommand'],
    episode: ['episodeCommand'],
    runs: [
      ...['listRunsCommand', 'showRunCommand'],
      ...['cancelRunCommand', 'pauseRunCommand', 'resumeRunCommand', 'deleteRunCommand'],
    ],
  }
  return (file: string) =>
    Object.fromEntries(
      (names[file] ?? []).map((name) => [
        name,
        async (...given: unknown[]) => {
          // Commander adds itself as the last argument where a function is handed to it as it is.
          called.push({ name, arguments: given })
          return 0
        },
      ]),
    )
})

vi.mock('./commands/demo.ts', () => fakes('demo'))
vi.mock('./commands/serve.ts', () => fakes('serve'))
vi.mock('./commands/doctor.ts', () => fakes('doctor'))
vi.mock('./commands/doctor-tasks.ts', () => fakes('doctor-tasks'))
vi.mock('./commands/setup.ts', () => fakes('setup'))
vi.mock('./commands/test.ts', () => fakes('test'))
vi.mock('./commands/artifacts.ts', () => fakes('artifacts'))
vi.mock('./commands/bench.ts', () => fakes('bench'))
vi.mock('./commands/sandboxes.ts', () => fakes('sandboxes'))
vi.mock('./commands/images.ts', () => fakes('images'))
vi.mock('./commands/runs.ts', () => fakes('runs'))
vi.mock('./commands/watch-run.ts', () => fakes('watch-run'))
vi.mock('./commands/results.ts', () => fakes('results'))
vi.mock('./commands/episodes.ts', () => fakes('episodes'))
vi.mock('./commands/episode.ts', () => fakes('episode'))

beforeEach(() => {
  called.length = 0
})

async function parse(line: string): Promise<unknown> {
  const program = quiet(makeProgram())
  await program.parseAsync(line.split(' '), { from: 'user' })
  process.exitCode = 0
  expect(called).toHaveLength(1)
  return [called[0]?.name, ...(called[0]?.arguments ?? [])]
}

function quiet(program: ReturnType<typeof makeProgram>): ReturnType<typeof makeProgram> {
  program.configureOutput({ writeOut: () => undefined, writeErr: () => undefined })
  for (const command of program.commands) quiet(command)
  return program
}

test.each([
  ['demo', ['demoCommand', {}]],
  [
    'demo --tasks 5 --concurrency 8 --json',
    ['demoCommand', { tasks: 5, concurrency: 8, json: true }],
  ],
  ['doctor --json', ['doctorCommand', { json: true }]],
  ['doctor tasks a b', ['doctorTasksCommand', ['a', 'b'], { times: 3, pass: 1 }]],
  [
    'doctor tasks a --times 5 --pass 0.5 --reward-name style --allow a.b --task-env A=1 --build --write q --json',
    [
      'doctorTasksCommand',
      ['a'],
      {
        ...{ times: 5, pass: 0.5, rewardName: 'style', allow: ['a.b'], taskEnv: ['A=1'] },
        ...{ build: true, write: 'q', json: true },
      },
    ],
  ],
  ['serve', ['serveCommand', {}]],
  [
    'serve --host ::1 --port 0 --data-directory /d --run-directory /r --pool 0 --attached',
    [
      'serveCommand',
      { host: '::1', port: 0, dataDirectory: '/d', runDirectory: '/r', pool: 0, attached: true },
    ],
  ],
  ['doctor --json --deep', ['doctorCommand', { json: true, deep: true }]],
  ['setup', ['setupCommand']],
  ['ps -a --json', ['psCommand', { all: true, json: true }]],
  [
    'sandbox create --from debian:bookworm --memory 1GiB --cpu 0.5 --disk 2GiB --pids 9 --pids-per-user 8 --open-files 64 --file-size 1MiB --env A=1 --env B=2 --keep-warm 5m --lifetime 1h --tag x=y',
    [
      'createCommand',
      {
        from: 'debian:bookworm',
        memory: '1GiB',
        cpu: 0.5,
        disk: '2GiB',
        pids: 9,
        pidsPerUser: 8,
        openFiles: 64,
        fileSize: '1MiB',
        env: ['A=1', 'B=2'],
        keepWarm: '5m',
        lifetime: '1h',
        tag: ['x=y'],
      },
    ],
  ],
  [
    'sandbox exec --cwd /work --user 1000 --timeout 5s --env A=1 sb_1 ls -la --color',
    [
      'execCommand',
      'sb_1',
      ['ls', '-la', '--color'],
      { cwd: '/work', user: '1000', timeout: '5s', env: ['A=1'] },
    ],
  ],
  ['sandbox exec sb_1 -- sh -c true', ['execCommand', 'sb_1', ['sh', '-c', 'true'], {}]],
  ['sandbox stop sb_1 sb_2', ['stopCommand', ['sb_1', 'sb_2']]],
  ['sandbox logs sb_1 --exec ex_1', ['logsCommand', 'sb_1', { exec: 'ex_1' }]],
  ['images list --json', ['listImagesCommand', { json: true }]],
  [
    'images build debian bookworm python3 git',
    ['buildImageCommand', 'debian', 'bookworm', ['python3', 'git'], {}],
  ],
  ['images build tar ./it.tar', ['buildImageCommand', 'tar', './it.tar', [], {}]],
  ['images build registry a:1', ['buildImageCommand', 'registry', 'a:1', [], {}]],
  [
    'images build dockerfile ./D --context . --target run --arg A=1 --arg B=2 --verbose',
    [
      ...['buildImageCommand', 'dockerfile', './D', []],
      { context: '.', target: 'run', arg: ['A=1', 'B=2'], verbose: true },
    ],
  ],
  ['images remove im_1', ['removeImageCommand', 'im_1']],
  ['runs list --json', ['listRunsCommand', { json: true }]],
  ['runs artifacts r1 k log', ['artifactsCommand', 'r1', 'k', 'log']],
  ['runs show r1 --json', ['showRunCommand', 'r1', { json: true }]],
  ['runs watch r1', ['watchRunCommand', 'r1']],
  ['runs results r1 --from c1', ['resultsCommand', 'r1', { from: 'c1' }]],
  [
    'runs results r1 --now --output f --format jsonl',
    ['resultsCommand', 'r1', { now: true, output: 'f', format: 'jsonl' }],
  ],
  [
    'runs episodes r1 --state done --outcome graded --limit 3 --json',
    ['listEpisodesCommand', 'r1', { state: 'done', outcome: 'graded', limit: 3, json: true }],
  ],
  ['episode r1 k1', ['episodeCommand', 'r1', 'k1', {}]],
  ['episode ep_1 --json', ['episodeCommand', 'ep_1', undefined, { json: true }]],
  ['runs cancel r1', ['cancelRunCommand', 'r1']],
  ['runs pause r1', ['pauseRunCommand', 'r1']],
  ['runs resume r1', ['resumeRunCommand', 'r1']],
  ['runs delete r1', ['deleteRunCommand', 'r1']],
  [
    'bench create exec --json --samples --long',
    ['benchCommand', ['create', 'exec'], { json: true, samples: true, long: true }],
  ],
  ['test packages/core e2e', ['testCommand', ['packages/core', 'e2e']]],
])('%s', async (line, expected) => {
  expect(await parse(line)).toEqual(expected)
})

test.each([
  'nonsense',
  'sandbox nonsense',
  'demo --nonsense',
  'demo --tasks 0',
  'demo --tasks 1.5',
  'demo --tasks many',
  'demo --concurrency -1',
  'serve --port 65536',
  'serve --port -1',
  'serve --pool -1',
  'sandbox create',
  'sandbox create --from im_1 --cpu 0',
  'sandbox create --from im_1 --pids none',
  'sandbox exec sb_1',
  'sandbox stop',
  'images build zip it.zip',
  'runs show',
])('%s is refused', async (line) => {
  const parsing = quiet(makeProgram()).parseAsync(line.split(' '), { from: 'user' })
  await expect(parsing).rejects.toBeInstanceOf(CommanderError)
  expect(called).toEqual([])
})

test('every verb tells what it is for', () => {
  const verbs = (command: ReturnType<typeof makeProgram>): ReturnType<typeof makeProgram>[] =>
    command.commands.flatMap((each) => [each, ...verbs(each)])
  const all = verbs(makeProgram())
  expect(all.length).toBeGreaterThan(20)
  expect(all.filter((command) => command.description() === '').map((each) => each.name())).toEqual(
    [],
  )
})
