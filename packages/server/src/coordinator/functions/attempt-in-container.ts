/** One lease in a container: what it needs is brought, its function is called, and what it left is kept. */
import type { Digest } from '@sandlot/engine'
import {
  type Artifact,
  blobFile,
  type FunctionAttempt,
  type FunctionAttemptEnd,
  functionAttemptEnd,
  type Lease,
  LIMITS,
  OUTPUT_ARTIFACTS,
  type TaskError,
} from '@sandlot/protocol'
import type { Container } from '../../functions/container.ts'
import type { TryEnd } from '../../functions/tries.ts'
import { COORDINATOR_LIMITS } from '../limits.ts'
import { keepOutput } from '../programs/output.ts'
import { messageOf, type SandboxWork } from '../sandboxes.ts'
import type { FunctionHost } from './function-host.ts'

/** `lost`: with its container, so that nobody knows what it did. */
export type AttemptInContainer =
  | (Omit<FunctionAttemptEnd, 'artifacts'> & {
      readonly kind: 'ended'
      readonly artifacts: readonly Artifact[]
    })
  | { readonly kind: 'lost'; readonly cause: string }

interface Request {
  readonly container: Container
  readonly host: FunctionHost
  readonly lease: Lease
  readonly onNews: (news: unknown) => void
}

/** Measured was nothing. */
const NOTHING = { artifacts: [], agentMs: 0, modelMs: 0, lagMs: 0 } as const

/** Never rejects. */
export async function runInContainer(
  work: SandboxWork,
  request: Request,
): Promise<AttemptInContainer> {
  const { container, lease } = request
  const printed = { stdout: '', stderr: '' }
  try {
    for (const blob of [lease.taskBlob, lease.dataBlob]) {
      if (blob !== null) await container.bring(blobFile(blob), blob)
    }
    const end = await call(work, request, printed)
    if (end.kind !== 'value') return end.error.code === null ? threw(end.error) : lost(end)
    const { artifacts = [], ...told } = await parseEnd(work, end)
    for (const blob of blobsOf(told.report, artifacts)) {
      await container.collect(blobFile(blob), blob)
    }
    const output = await keepOutput(work, bytesOf(printed), outputNames(lease))
    return {
      kind: 'ended',
      ...told,
      artifacts: [...artifacts, ...output].slice(0, LIMITS.artifacts),
    }
  } catch (error) {
    work.warn(`what a container did for ${work.record.name} could not be kept`, error)
    return { kind: 'ended', ...unkept(lease, error), ...NOTHING }
  }
}

/** An agent's part begins again elsewhere; a grade ends without a verdict, and by no doing of the grader. */
function unkept({ phase }: Lease, error: unknown): Pick<FunctionAttemptEnd, 'report' | 'fault'> {
  if (phase === 'agent') return { report: { kind: 'aborted' } }
  const cause = ['what its container gave could not be kept', messageOf(error)]
  return { report: { kind: 'threw', cause }, fault: 'platform' }
}

async function call(
  { record }: SandboxWork,
  { container, host, lease, onNews }: Request,
  printed: Record<'stdout' | 'stderr', string>,
) {
  const { project } = record
  const token = host.token({ project, sandbox: lease.sandbox, lease: lease.lease })
  const input: FunctionAttempt = { lease, url: host.url, token }
  return await container.run({
    ...{ id: lease.lease, json: JSON.stringify(input), blob: null, attempt: lease.attempt, onNews },
    outputPin: null,
    onLog: ({ channel, text }) => {
      if (printed[channel].length < COORDINATOR_LIMITS.outputHeadBytes)
        printed[channel] += `${text}\n`
    },
  })
}

/** How its part of the protocol was kept is not for the function's author to see to. */
async function parseEnd(
  { engine }: SandboxWork,
  { json, blob }: Extract<TryEnd, { kind: 'value' }>,
): Promise<FunctionAttemptEnd> {
  const text = json ?? (await textOf(engine.blobs, blob))
  return functionAttemptEnd.parse(JSON.parse(text))
}

async function textOf(blobs: SandboxWork['engine']['blobs'], blob: string | null) {
  if (blob === null) return 'null'
  const { body } = await blobs.open(blob as Digest)
  const parts: Uint8Array[] = []
  for await (const part of body) parts.push(part)
  return Buffer.concat(parts).toString()
}

function blobsOf(report: FunctionAttemptEnd['report'], artifacts: readonly Artifact[]) {
  const data = report.kind === 'returned' ? report.dataBlob : undefined
  return new Set([...artifacts.map(({ blob }) => blob), ...(data ? [data] : [])])
}

function bytesOf({ stdout, stderr }: Record<'stdout' | 'stderr', string>) {
  return { stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) }
}

function outputNames({ phase }: Lease) {
  const { agentStdout, agentStderr, gradeStdout, gradeStderr } = OUTPUT_ARTIFACTS
  return phase === 'agent'
    ? { stdout: agentStdout, stderr: agentStderr }
    : { stdout: gradeStdout, stderr: gradeStderr }
}

function threw({ name, message }: TaskError): AttemptInContainer {
  return { kind: 'ended', report: { kind: 'threw', cause: [`${name}: ${message}`] }, ...NOTHING }
}

function lost({ error }: Extract<TryEnd, { error: unknown }>): AttemptInContainer {
  return { kind: 'lost', cause: error.message }
}
