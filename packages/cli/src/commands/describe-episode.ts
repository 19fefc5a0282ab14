/** What `sandlot episode` prints. */
import { formatDuration, formatSize } from '@sandlot/protocol'
import type { EpisodeView, ExecView, ResultRow } from 'sandlot'
import { z } from 'zod'
import { formatTable } from '../output/table.ts'

export interface Described {
  readonly run: string
  readonly view: EpisodeView
  readonly execs: readonly ExecView[]
  readonly log: string
  readonly nowMs: number
}

const LOG_LINES = 20
const COMMAND_SHOWN = 80
const CAUSE_SHOWN = 160

export function describeEpisode({ run, view, execs, log, nowMs }: Described): string {
  const { row } = view
  const facts = [
    ['episode', view.episode],
    ['run', run],
    ['key', view.key],
    ...(view.group === view.key ? [] : [['group', `${view.group}, member ${view.member}`]]),
    ...(row ? factsOfRow(row) : factsOfLive(view, nowMs)),
  ]
  const parts = [formatTable(['', ''], facts).trimStart(), attemptsOf(view)]
  if (execs.length > 0) parts.push(execsTable(execs, nowMs))
  if (row && row.artifacts.length > 0) {
    const rows = row.artifacts.map(({ name, sizeBytes }) => [name, formatSize(sizeBytes)])
    parts.push(formatTable(['ARTIFACT', 'SIZE'], rows))
  }
  if (log !== '') parts.push(tailOf(log))
  return parts.filter((part) => part !== '').join('\n\n')
}

function factsOfLive(view: EpisodeView, nowMs: number): string[][] {
  const { state, phase, sinceMs, waits, ahead } = view
  const facts = [
    ['state', `${phase === state ? state : `${state}: ${phase}`}, for ${since(sinceMs, nowMs)}`],
  ]
  if (waits !== null) {
    const before = ahead ? `; ${ahead} ${ahead === 1 ? 'is' : 'are'} before it` : ''
    facts.push(['waits for', waits + before])
  }
  for (const each of view.progress) {
    const { attempt, dueMs, worker, sandbox, node } = each
    const beside = attempt === view.attempt ? '' : ` (attempt ${attempt})`
    if (dueMs !== null) {
      const left = dueMs - nowMs
      const when = left > 0 ? `in ${formatDuration(Math.round(left))}` : 'now'
      facts.push([`ends at the latest${beside}`, when])
    }
    if (sandbox !== null) facts.push([`sandbox${beside}`, `${sandbox} on ${node}`])
    if (worker !== null) {
      const { name, heardMs, goneMs } = worker
      const gone = goneMs === null ? '' : `, its connection gone for ${since(goneMs, nowMs)}`
      facts.push([`worker${beside}`, `${name}, heard ${since(heardMs, nowMs)} ago${gone}`])
    }
  }
  return facts
}

function factsOfRow(row: ResultRow): string[][] {
  const { outcome, valid, reward, rewards, flags, dropped, cause, usage, endedAt } = row
  const { kept = null, leftOut = [] } = row
  const told = rewards === null ? String(reward ?? '-') : JSON.stringify(rewards)
  return [
    ['state', `done at ${endedAt}`],
    ['outcome', `${outcome}${valid ? '' : ' (no sample)'}${dropped ? ', dropped' : ''}`],
    ['reward', told],
    ...stepsOf(row),
    ...endOfProgram(row),
    ...cause.flatMap((each) => each.split('\n')).map((line, at) => [at === 0 ? 'why' : '', line]),
    ...(flags.length > 0 ? [['flags', flags.join(', ')]] : []),
    ...(kept === null ? [] : [['kept', `sandlot sandbox create --from ${kept} opens its files`]]),
    ...leftOut.map((line, at) => [at === 0 ? 'left out' : '', line]),
    [
      'used',
      `${formatDuration(Math.round(usage.cpuMs))} of CPU, ${formatSize(usage.memoryPeakBytes)} of memory, ${formatSize(usage.diskBytes)} of disk`,
    ],
  ]
}

/** How the command of an episode that is one ended. */
const ended = z.strictObject({
  exitCode: z.number().nullable(),
  signal: z.string().nullable(),
  durationMs: z.number(),
})

function endOfProgram({ data }: ResultRow): string[][] {
  const found = ended.safeParse(data)
  if (!found.success) return []
  const { exitCode, signal, durationMs } = found.data
  const how = signal === null ? `exited with ${exitCode}` : `was ended by ${signal}`
  return [['command', `${how} after ${formatDuration(Math.round(durationMs))}`]]
}

/** What each step of a program was given. */
const stepped = z.object({
  steps: z.array(
    z.object({
      name: z.string(),
      reward: z.number().optional(),
      rewards: z.record(z.string(), z.number()).optional(),
    }),
  ),
})

function stepsOf({ data }: ResultRow): string[][] {
  const found = stepped.safeParse(data)
  if (!found.success || found.data.steps.length === 0) return []
  const told = found.data.steps.map(
    ({ name, reward, rewards }) => `${name} ${rewards ? JSON.stringify(rewards) : reward}`,
  )
  return [['steps', told.join(', ')]]
}

/** Each attempt with how long its phases took, those in progress last. */
function attemptsOf({ attempts, progress }: EpisodeView): string {
  const tries = [
    ...attempts,
    ...progress.map(({ phase, ...each }) => ({ ...each, outcome: `(${phase})`, cause: [] })),
  ].sort((a, b) => a.attempt - b.attempt)
  if (tries.length === 0) return ''
  const phases = Object.keys(tries[0]?.phases ?? {}) as (keyof ResultRow['phases'])[]
  const used = phases.filter((phase) => tries.some((each) => each.phases[phase] > 0))
  const rows = tries.map(({ attempt, outcome, sandbox, cause, phases }) => [
    String(attempt),
    outcome ?? 'given up',
    sandbox ?? '-',
    ...used.map((phase) => formatDuration(Math.round(phases[phase]))),
    cause.join(': ').slice(0, CAUSE_SHOWN),
  ])
  const names = used.map((phase) => phase.replace(/Ms$/, '').toUpperCase())
  return formatTable(['ATTEMPT', 'ENDED AS', 'SANDBOX', ...names, 'WHY'], rows)
}

function execsTable(execs: readonly ExecView[], nowMs: number): string {
  const rows = execs.map(({ exec, running, startedAtMs, command }) => [
    exec,
    running ? 'running' : 'ended',
    `${since(startedAtMs, nowMs)} ago`,
    command.slice(0, COMMAND_SHOWN),
  ])
  return formatTable(['EXEC', 'STATE', 'STARTED', 'COMMAND'], rows)
}

function tailOf(log: string): string {
  const lines = log.trimEnd().split('\n')
  const left = lines.length - LOG_LINES
  const heading = left > 0 ? `LOG (the last ${LOG_LINES} of ${lines.length} lines)` : 'LOG'
  return [heading, ...lines.slice(-LOG_LINES)].join('\n')
}

function since(atMs: number, nowMs: number): string {
  return formatDuration(Math.max(0, Math.round(nowMs - atMs)))
}
