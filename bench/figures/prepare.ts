import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Image, Sandlot } from 'sandlot'
import type { Bench } from '../bench.ts'
import { BenchDaemon, daemonSetting } from '../daemon/daemon.ts'
import { interleave, timed } from '../interleave.ts'
import { temporaryDirectory } from '../temporary.ts'

const FILES = 50
const FILE_BYTES = 4_096

/** An environment that is prepared already, asked for again by the SDK with all that it is made of. */
export const prepare: Bench = async (context) => {
  const { id } = await context.image()
  const local = await projectIn(await temporaryDirectory(context))
  const daemon = context.scope.use(
    await BenchDaemon.start(context, await daemonSetting(context, {})),
  )
  const client = context.scope.use(new Sandlot(daemon))
  const options = {
    from: Image.fromId(id),
    files: { [local]: '/work' },
    workdir: '/work',
    env: { SUITE: 'bench' },
    setup: ['python3 -m compileall -q .', 'echo done > /done'],
    network: 'none',
  } as const
  const first = await client.prepare(options)
  const again = async () => {
    const found = await client.prepare(options)
    if (found.id !== first.id) throw new Error('the same content became another template')
  }
  const samples = await interleave(
    context,
    { max: 200, warmUp: 3 },
    { look: () => timed(() => client.templates.get(first.id)), ours: () => timed(again) },
  )
  return [
    {
      name: 'prepare',
      unit: 'ms',
      samples: samples.ours,
      reference: samples.look,
      target: { of: 'value', atMost: 20 },
      note: `${FILES} files and two commands, all known; reference: to look at the template by its id`,
    },
  ]
}

async function projectIn(directory: string): Promise<string> {
  const project = join(directory, 'project')
  await mkdir(project)
  for (let file = 0; file < FILES; file++) {
    const text = `# ${file}\n`.padEnd(FILE_BYTES, 'value = 1\n')
    await writeFile(join(project, `module_${file}.py`), text)
  }
  return project
}
