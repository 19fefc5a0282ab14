/** One stage of a Dockerfile on its way to a description: instruction by instruction. */
import { userName } from '@sandlot/protocol'
import type { ImageDescription } from '../image.ts'
import type { Context } from './context.ts'
import { addSteps, copySteps } from './copy.ts'
import { type Instruction, refused } from './instruction.ts'
import { runStep } from './run.ts'
import type { Variables } from './variables.ts'
import { plain, type Reading, rendered, type Word, wordOf, wordsOf } from './words.ts'

export interface Stage {
  readonly name: string | undefined
  readonly variables: Variables
  readonly context: Context
  /** The stages before it, and images of a registry by any other name. */
  readonly other: (name: string, instruction: Instruction) => ImageDescription
  /** Tells a person what has no effect. */
  readonly note: (line: string) => void
  /** Of each `RUN`. */
  readonly timeout: string | number | undefined
  shell: readonly string[]
  description: ImageDescription
}

type Handler = (stage: Stage, instruction: Instruction) => void | Promise<void>

const HANDLERS: Readonly<Record<string, Handler>> = {
  RUN: (stage, instruction) => add(stage, runStep(stage, instruction)),
  COPY: async (stage, instruction) => {
    for (const step of await copySteps(stage, instruction)) add(stage, step)
  },
  ADD: async (stage, instruction) => {
    for (const step of await addSteps(stage, instruction)) add(stage, step)
  },
  ARG: declareArguments,
  ENV: setEnvironment,
  LABEL: setLabels,
  WORKDIR: (stage, instruction) => {
    const [path, expand] = oneText(stage, instruction)
    add(stage, { kind: 'workdir', path, ...expand })
  },
  USER: (stage, instruction) => {
    const [user, expand] = oneText(stage, instruction)
    if (!('expand' in expand) && !userName.safeParse(user).success) {
      throw refused(
        instruction,
        `${JSON.stringify(user.slice(0, 64))} is not supported`,
        'Write a name or number, or USER:GROUP.',
      )
    }
    add(stage, { kind: 'user', user, ...expand })
  },
  SHELL: (stage, instruction) => {
    if (!instruction.list?.length) throw needsList(instruction)
    stage.shell = instruction.list
    add(stage, { kind: 'shell', command: [...instruction.list] })
  },
  ENTRYPOINT: (stage, instruction) =>
    add(stage, { kind: 'command', entrypoint: commandOf(stage, instruction) }),
  CMD: (stage, instruction) =>
    add(stage, { kind: 'command', command: commandOf(stage, instruction) }),
  EXPOSE: () => {},
  VOLUME: hasNoEffect,
  HEALTHCHECK: hasNoEffect,
  STOPSIGNAL: hasNoEffect,
  MAINTAINER: hasNoEffect,
}

/** Takes one instruction into the stage. @throws SandlotError `image_source_invalid`, with the line */
export async function take(stage: Stage, instruction: Instruction): Promise<void> {
  const handler = HANDLERS[instruction.keyword]
  if (handler) return await handler(stage, instruction)
  throw refused(
    instruction,
    'is not supported',
    'Leave it out, or say the same with RUN, COPY, ENV, WORKDIR, USER or SHELL.',
  )
}

/** What the words of an instruction are read with. */
export function readingOf(instruction: Instruction, variables: Pick<Variables, 'lookup'>): Reading {
  return {
    lookup: variables.lookup,
    escapeSign: instruction.escapeSign,
    wrong: (problem) => refused(instruction, problem, WORDS_HINT),
  }
}

/** The text of an instruction, which may be left to the daemon. */
function oneText(
  stage: Stage,
  instruction: Instruction,
): [text: string, expand: { readonly expand?: true }] {
  if (instruction.text === '') {
    throw refused(instruction, 'names nothing', `Write ${instruction.keyword} and a name.`)
  }
  const { values, expand } = rendered([
    wordOf(instruction.text, readingOf(instruction, stage.variables)),
  ])
  return [values[0] ?? '', expand ? { expand } : {}]
}

/** A word without open variables. */
export function closed(instruction: Instruction, word: Word): string {
  const found = plain(word)
  if ('text' in found) return found.text
  throw refused(
    instruction,
    `uses $${found.open}, which this Dockerfile does not set`,
    'Set it by ENV or ARG before this line; what the base image has for it is known in ENV, WORKDIR, USER, and in where COPY and ADD go and to whom.',
  )
}

const WORDS_HINT =
  'A variable is $NAME, or in braces with a word for where it has no value (:-) or has one (:+), or a pattern (#, %, /).'

function add(stage: Stage, step: Parameters<ImageDescription['with']>[0]): void {
  stage.description = stage.description.with(step)
}

function declareArguments(stage: Stage, instruction: Instruction): void {
  for (const [name, value] of pairsOf(stage, instruction, instruction.text)) {
    stage.variables.declare(name, value && [closed(instruction, value)])
  }
}

function setEnvironment(stage: Stage, instruction: Instruction): void {
  const pairs = assignmentsOf(stage, instruction)
  const { values, expand } = rendered(pairs.map(([, word]) => word))
  const env = pairs.map(([name], at) => [name, values[at] ?? ''])
  add(stage, { kind: 'env', env: Object.fromEntries(env), ...(expand ? { expand } : {}) })
  for (const [name, word] of pairs) stage.variables.set(name, word)
}

function setLabels(stage: Stage, instruction: Instruction): void {
  const labels = assignmentsOf(stage, instruction).map(([name, word]) => [
    name,
    closed(instruction, word),
  ])
  add(stage, { kind: 'labels', labels: Object.fromEntries(labels) })
}

/** `NAME=value …`, or the old `NAME value`. */
function assignmentsOf(stage: Stage, instruction: Instruction): (readonly [string, Word])[] {
  const old = /^([^\s=]+)\s+(.*)$/s.exec(instruction.text)
  const reading = readingOf(instruction, stage.variables)
  if (old) return [[old[1] ?? '', wordOf(old[2] ?? '', reading)]]
  return pairsOf(stage, instruction, instruction.text).map(([name, word]) => {
    if (word) return [name, word] as const
    throw refused(instruction, `gives ${name} no value`, 'Write NAME=value.')
  })
}

function pairsOf(
  stage: Stage,
  instruction: Instruction,
  text: string,
): (readonly [name: string, value: Word | undefined])[] {
  const pairs = wordsOf(text, readingOf(instruction, stage.variables)).map((word) => {
    const first = word.indexOf('=')
    if (first < 0) return [closed(instruction, word), undefined] as const
    return [closed(instruction, word.slice(0, first)), word.slice(first + 1)] as const
  })
  if (pairs.length > 0 && pairs.every(([name]) => /^[^\s=]+$/.test(name))) return pairs
  throw refused(instruction, 'names no variable', 'Write NAME=value.')
}

function commandOf(stage: Stage, instruction: Instruction): string[] {
  if (instruction.list) return [...instruction.list]
  return instruction.text === '' ? [] : [...stage.shell, instruction.text]
}

function hasNoEffect(stage: Stage, { keyword, line }: Instruction): void {
  stage.note(`Dockerfile line ${line}: ${keyword} has no effect in a sandbox`)
}

function needsList(instruction: Instruction): Error {
  return refused(instruction, 'needs a list', 'Write it as ["/bin/bash", "-c"].')
}
