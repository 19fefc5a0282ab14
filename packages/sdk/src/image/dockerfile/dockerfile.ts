/** From a Dockerfile to the description of what it builds: its stages as a tree, of which only the needed ones are built. */
import { readFile } from 'node:fs/promises'
import { isStartId, parseStartName, SandlotError } from '@sandlot/protocol'
import { ImageDescription } from '../image.ts'
import type { DockerfileOptions, ImageBase } from '../local-step.ts'
import { type Context, contextOf } from './context.ts'
import { type Instruction, instructionsOf, refused } from './instruction.ts'
import { readingOf, type Stage, take } from './stage.ts'
import { Variables } from './variables.ts'
import { plain, wordOf, wordsOf } from './words.ts'

const SHELL = ['/bin/sh', '-c']

/**
 * Reads a Dockerfile. `note` gets what has no effect, a line each. @throws SandlotError `image_source_invalid` with instruction and
 * line, `not_found`
 */
export async function readDockerfile(
  path: string,
  options: DockerfileOptions,
  note: (line: string) => void,
): Promise<ImageDescription> {
  const text = await readFile(path, 'utf8').catch((cause) => {
    throw new SandlotError('not_found', `${path} can't be read: ${(cause as Error).message}`, {
      hint: 'Give the path of the Dockerfile itself.',
      cause,
    })
  })
  const context = contextOf(path, options.context)
  return await describeDockerfile(text, context, options, note)
}

export async function describeDockerfile(
  text: string,
  context: Context,
  options: DockerfileOptions,
  note: (line: string) => void,
): Promise<ImageDescription> {
  const given = options.args ?? {}
  const outer = new Variables(given, { baseHasOthers: false })
  const stages: Stage[] = []
  for (const instruction of instructionsOf(text)) {
    const stage = stages.at(-1)
    if (instruction.keyword === 'FROM') {
      if (isTarget(stage, options.target)) break
      const { timeout } = options
      stages.push(beginStage(instruction, { stages, outer, given, context, note, timeout }))
    } else if (stage) await take(stage, instruction)
    else if (instruction.keyword === 'ARG') declareOuter(outer, instruction)
    else throw refused(instruction, 'stands before FROM', 'Begin with FROM.')
  }
  noteUnused(given, [outer, ...stages.map(({ variables }) => variables)], note)
  return targetOf(stages, options.target).description
}

function beginStage(
  instruction: Instruction,
  given: {
    stages: readonly Stage[]
    outer: Variables
    given: Readonly<Record<string, string>>
    context: Context
    note: (line: string) => void
    timeout: DockerfileOptions['timeout']
  },
): Stage {
  const { stages, outer, context, note, timeout } = given
  checkPlatform(instruction, outer)
  const reading = readingOf(instruction, outer)
  const words = wordsOf(instruction.text, reading).map((word) => word.join(''))
  const [image = '', as, name] = words
  const right = words.length === 1 || (words.length === 3 && as?.toUpperCase() === 'AS')
  if (image === '' && instruction.text.includes('$')) {
    const hint = 'Give the ARG a default before FROM, or a value: Image.dockerfile(path, { args }).'
    throw refused(instruction, `names no image: ${instruction.text} is empty`, hint)
  }
  if (image === '' || !right) {
    throw refused(instruction, 'names no image', 'Write FROM image, or FROM image AS name.')
  }
  const base = stages.find((stage) => stage.name === image.toLowerCase())
  const empty = image === 'scratch'
  return {
    name: name?.toLowerCase(),
    variables: new Variables(given.given, { outer, base: base?.variables, baseHasOthers: !empty }),
    context,
    note,
    timeout,
    other: (other, at) => otherStage(other, stages.slice(), at),
    shell: base?.shell ?? SHELL,
    description: base
      ? base.description
      : new ImageDescription(empty ? { kind: 'empty' } : namedBase(image)),
  }
}

/** What `COPY --from` names: a stage by name or number, or an image. */
function otherStage(
  name: string,
  before: readonly Stage[],
  instruction: Instruction,
): ImageDescription {
  const stage = /^\d+$/.test(name)
    ? before[Number(name)]
    : before.find((each) => each.name === name.toLowerCase())
  if (stage) return stage.description
  if (/^\d+$/.test(name)) {
    throw refused(instruction, `--from=${name}: there is no such stage before it`, 'Count from 0.')
  }
  return new ImageDescription(namedBase(name))
}

/** What the daemon has, by its id or as `snapshot:NAME` or `template:NAME`; else an image of a registry. */
function namedBase(name: string): ImageBase {
  const isThere = isStartId(name) || parseStartName(name) !== undefined
  return isThere ? { kind: 'id', id: name } : { kind: 'registry', reference: name }
}

function checkPlatform(instruction: Instruction, outer: Variables): void {
  for (const [name, value] of instruction.flags) {
    const platform = wordOf(value, readingOf(instruction, outer)).join('')
    const own = ['', 'linux/amd64', 'linux/x86_64', 'linux'].includes(platform)
    if (name === 'platform' && (own || /^\$\{?(BUILD|TARGET)PLATFORM\}?$/.test(value))) continue
    throw refused(
      instruction,
      `--${name}=${platform} is not supported`,
      'Images are of linux/amd64.',
    )
  }
}

function declareOuter(outer: Variables, instruction: Instruction): void {
  for (const word of wordsOf(instruction.text, readingOf(instruction, outer))) {
    const found = plain(word)
    const text = 'text' in found ? found.text : ''
    const [name = '', ...rest] = text.split('=')
    outer.declare(name, rest.length > 0 ? [rest.join('=')] : undefined)
  }
}

function isTarget(stage: Stage | undefined, target: string | undefined): boolean {
  return stage !== undefined && target !== undefined && stage.name === target.toLowerCase()
}

function targetOf(stages: readonly Stage[], target: string | undefined): Stage {
  const found =
    target === undefined ? stages.at(-1) : stages.find((stage) => isTarget(stage, target))
  if (found) return found
  const names = stages.map(({ name }) => name).filter((name) => name !== undefined)
  throw new SandlotError('image_source_invalid', `the Dockerfile has no stage ${target ?? ''}`, {
    hint: names.length > 0 ? `It has ${names.join(', ')}.` : 'Name one by FROM image AS name.',
  })
}

function noteUnused(
  given: Readonly<Record<string, string>>,
  scopes: readonly Variables[],
  note: (line: string) => void,
): void {
  for (const name of Object.keys(given)) {
    if (!scopes.some((scope) => scope.declares(name)))
      note(`no ARG of the Dockerfile is named ${name}`)
  }
}
