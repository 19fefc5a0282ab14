/** From the words of a command line to a pool that can be simulated. */
import { type Latency, type PoolInput, parseLatency } from '@sandlot/core/sizing'
import { type GroupRule, groupSpec, hedgeSpec, invalidRequest, LIMITS } from '@sandlot/protocol'
import { SandlotError } from 'sandlot'
import type { ZodError } from 'zod'

export interface PoolWords {
  readonly tasks: number
  readonly group?: string
  readonly hedge?: string
  readonly ahead?: number
  readonly longestFirst?: boolean
  readonly capacity?: number
  readonly creating?: number
  readonly create: string
  readonly agent: string
  readonly model?: string
  readonly modelCalls: number
  readonly modelSlots?: number
  readonly modelFailures: number
  readonly grade?: string
  readonly losses: number
  readonly hardness: number
  readonly trainerStep?: string
  readonly batch: number
  readonly seed: number
}

/** @throws SandlotError `invalid_request` naming the option */
export function poolOf(words: PoolWords): Omit<PoolInput, 'concurrency'> {
  const { tasks, seed, batch, losses, hardness } = words
  if (words.ahead !== undefined && words.trainerStep === undefined) {
    throw refused(
      '--ahead',
      'bounds how far the pool is before a trainer, and there is none',
      '--trainer-step',
    )
  }
  if (words.model === undefined && callsModel(words)) {
    throw refused(
      '--model-calls, --model-slots, --model-failures',
      'are of a model, and there is none',
      '--model 2s',
    )
  }
  const group = words.group === undefined ? null : groupOf(words.group)
  const episodes = tasks * (group ? group.size + group.extra : 1)
  if (episodes > LIMITS.episodes) {
    const most = `a run has at most ${LIMITS.episodes}`
    throw refused('--tasks', `${tasks} are ${episodes} episodes, and ${most}`, '256')
  }
  return {
    ...{ tasks, seed, hardness, expected: words.longestFirst === true },
    losses: shareOf('--losses', losses),
    capacity: words.capacity ?? null,
    creating: words.creating ?? null,
    ahead: words.ahead ?? null,
    group,
    hedge: words.hedge === undefined ? null : hedgeOf(words.hedge),
    create: latencyOf('--create', words.create),
    agent: latencyOf('--agent', words.agent),
    grade: words.grade === undefined ? null : latencyOf('--grade', words.grade),
    model:
      words.model === undefined
        ? null
        : {
            latency: latencyOf('--model', words.model),
            calls: words.modelCalls,
            slots: words.modelSlots ?? null,
            failures: shareOf('--model-failures', words.modelFailures),
          },
    trainer:
      words.trainerStep === undefined
        ? null
        : { batch, step: latencyOf('--trainer-step', words.trainerStep) },
  }
}

function callsModel({ modelCalls, modelSlots, modelFailures }: PoolWords): boolean {
  return modelCalls !== 1 || modelSlots !== undefined || modelFailures > 0
}

/** `size=8,extra=2,cut=p90`. Where a cut is given, a group is one with a result less, unless `need` says otherwise. */
export function groupOf(text: string): GroupRule {
  const given: Record<string, unknown> = {}
  for (const part of text.split(',')) {
    const [, name = '', value = ''] = /^\s*([^=]+?)\s*=\s*(.+?)\s*$/.exec(part) ?? []
    if (name === 'cut') given.cut = { after: value }
    else if (NUMBERS.includes(name)) given[name] = Number(value)
    else
      throw refused(
        '--group',
        `${JSON.stringify(part)} is not part of a group`,
        'size=8,extra=2,need=7,cut=p90,maxLag=2',
      )
  }
  if (given.cut && given.need === undefined) given.need = Math.max(1, Number(given.size) - 1)
  const parsed = groupSpec.safeParse(given)
  if (!parsed.success) throw asWritten(parsed.error)
  return parsed.data
}

/** A field of the rule is a word behind the option, and a cut is written without what it holds. */
function asWritten({ issues }: ZodError): SandlotError {
  const named = issues.map((issue) => ({
    ...issue,
    path: [['--group', ...issue.path.slice(0, 1)].join(' ')],
  }))
  return invalidRequest('', { issues: named })
}

const NUMBERS = ['size', 'need', 'extra', 'maxLag']

function hedgeOf(after: string) {
  const parsed = hedgeSpec.safeParse({ after })
  if (!parsed.success) throw invalidRequest('--hedge', parsed.error)
  return parsed.data
}

function latencyOf(option: string, text: string): Latency {
  try {
    return parseLatency(text)
  } catch (cause) {
    throw new SandlotError('invalid_request', `${option}: ${(cause as Error).message}`, { cause })
  }
}

function shareOf(option: string, share: number): number {
  if (share >= 0 && share < 1) return share
  throw refused(option, `${share} is not a share from 0 to below 1`, '0.02')
}

function refused(option: string, why: string, instead: string): SandlotError {
  return new SandlotError('invalid_request', `${option}: ${why}`, { hint: `As ${instead}.` })
}
