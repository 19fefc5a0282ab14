/** `COPY` and `ADD`. */
import { tarOfFiles, tarOfTexts } from '../copied-files.ts'
import { ignoreOf } from '../ignore.ts'
import type { CopyOptions, LocalStep } from '../local-step.ts'
import { archiveTar } from './archive.ts'
import type { Found } from './context.ts'
import { type Instruction, refused } from './instruction.ts'
import { closed, readingOf, type Stage } from './stage.ts'
import { expandedText, type Reading, rendered, type Word, wordOf, wordsOf } from './words.ts'

export async function copySteps(stage: Stage, instruction: Instruction): Promise<LocalStep[]> {
  const { sources, from, exclude, place } = operandsOf(stage, instruction)
  if (from !== undefined) {
    if (exclude.length > 0) throw unsupportedFlag(instruction, 'exclude')
    const paths = sources.map((path) => (path.startsWith('/') ? path : `/${path}`))
    return [{ kind: 'copyFrom', source: stage.other(from, instruction), paths, ...place }]
  }
  const texts = heredocTexts(stage, instruction, sources)
  const named = sources.filter((source) => !isHeredoc(source))
  const found = await findAll(stage, instruction, { sources: named, exclude })
  const steps: LocalStep[] = []
  const to = directoryOf(place.to, texts.length + found.length)
  if (texts.length > 0) steps.push({ ...place, ...textStep(texts, to) })
  if (found.length > 0) steps.push({ ...place, ...filesStep(stage, found, to) })
  return steps
}

/** As `COPY`, but an archive of this machine is unpacked. */
export async function addSteps(stage: Stage, instruction: Instruction): Promise<LocalStep[]> {
  const { sources, from, exclude, place } = operandsOf(stage, instruction)
  const remote = sources.find((source) => /^([a-z]+:\/\/|git@)/i.test(source))
  if (remote !== undefined) {
    throw refused(
      instruction,
      `of ${remote} is not supported`,
      'Download it into the context, or by RUN from a host that the image’s network allows.',
    )
  }
  if (from !== undefined) throw unsupportedFlag(instruction, 'from')
  if (sources.some(isHeredoc)) return await copySteps(stage, instruction)
  const found = await findAll(stage, instruction, { sources, exclude })
  const steps: LocalStep[] = []
  for (const each of found) {
    const archive = each.directory ? undefined : await archiveTar(instruction, each)
    if (archive) {
      const files = { from: each.name, tar: async () => ({ bytes: archive(), file: false }) }
      steps.push({ kind: 'copy', files, ...place })
    } else {
      const to = directoryOf(place.to, found.length)
      steps.push({ ...place, ...filesStep(stage, [each], to) })
    }
  }
  return steps
}

interface Operands {
  readonly sources: readonly string[]
  readonly from: string | undefined
  readonly exclude: readonly string[]
  /** Where it goes and to whom, which may be left to the daemon. */
  readonly place: CopyOptions & { readonly to: string; readonly expand?: true }
}

function operandsOf(stage: Stage, instruction: Instruction): Operands {
  const { list, text } = instruction
  const reading = readingOf(instruction, stage.variables)
  const words = list ? list.map((word) => wordOf(word, reading)) : [...wordsOf(text, reading)]
  const to = words.pop()
  if (to === undefined || words.length === 0) {
    throw refused(
      instruction,
      'needs a source and a destination',
      `Write ${instruction.keyword} source destination.`,
    )
  }
  const { from, exclude, owner, mode } = flagsOf(instruction, reading)
  const { values, expand } = rendered(owner ? [to, owner] : [to])
  const place = {
    to: values[0] ?? '',
    ...(owner ? { owner: values[1] ?? '' } : {}),
    ...(mode === undefined ? {} : { mode }),
    ...(expand ? { expand } : {}),
  }
  return { sources: words.map((word) => closed(instruction, word)), from, exclude, place }
}

function flagsOf(instruction: Instruction, reading: Reading) {
  const exclude: string[] = []
  const options: { from?: string; owner?: Word; mode?: number } = {}
  for (const [name, raw] of instruction.flags) {
    const word = wordOf(raw, reading)
    if (name === 'chown') options.owner = word
    else {
      const value = closed(instruction, word)
      if (name === 'from') options.from = value
      else if (name === 'chmod' && /^[0-7]{3,4}$/.test(value))
        options.mode = Number.parseInt(value, 8)
      else if (name === 'exclude') exclude.push(value)
      // How its layer is kept is the daemon's business.
      else if (name !== 'link') throw unsupportedFlag(instruction, `${name}=${value}`)
    }
  }
  return { exclude, ...options }
}

async function findAll(
  stage: Stage,
  instruction: Instruction,
  { sources, exclude }: Pick<Operands, 'sources' | 'exclude'>,
): Promise<readonly Found[]> {
  const found: Found[] = []
  const isOut = ignoreOf(exclude)
  for (const source of sources) {
    const here = await stage.context.find(source)
    if (here.length === 0) {
      throw refused(
        instruction,
        `finds no ${source} in ${stage.context.directory}`,
        'Check the path, which is relative to the context, and the .dockerignore. A link is followed within the context alone.',
      )
    }
    for (const each of here) {
      const files = each.files.filter(({ name }) => !isOut(name))
      if (each.directory || files.length > 0) found.push({ ...each, files })
    }
  }
  return found
}

type CopyStep = Extract<LocalStep, { kind: 'copy' }>

function filesStep(stage: Stage, found: readonly Found[], to: string): CopyStep {
  const files = found.flatMap((each) => each.files)
  const file = found.length === 1 && found[0]?.directory === false && !to.endsWith('/')
  return {
    kind: 'copy',
    files: {
      from: `${stage.context.directory}: ${found.map(({ name }) => name).join(', ')}`,
      tar: async () => tarOfFiles(files, file),
    },
    to,
  }
}

function textStep(texts: readonly { name: string; text: string }[], to: string): CopyStep {
  const file = texts.length === 1 && !to.endsWith('/')
  return {
    kind: 'copy',
    files: { from: 'a here-document', tar: async () => tarOfTexts(texts, file) },
    to,
  }
}

/** The sources that are marks, in the order of the texts below them. */
function heredocTexts(stage: Stage, instruction: Instruction, sources: readonly string[]) {
  const marks = sources.filter(isHeredoc)
  return instruction.heredocs.slice(0, marks.length).map(({ name, content, expands }) => {
    if (!expands) return { name, text: content }
    const word = expandedText(content, readingOf(instruction, stage.variables))
    return { name, text: closed(instruction, word) }
  })
}

function isHeredoc(source: string): boolean {
  return source.startsWith('<<')
}

/** Several things go into a directory, whatever its name ends with. */
function directoryOf(to: string, things: number): string {
  return things > 1 && !to.endsWith('/') ? `${to}/` : to
}

function unsupportedFlag(instruction: Instruction, flag: string): Error {
  return refused(
    instruction,
    `--${flag} is not supported`,
    'Use --from, --chown, --chmod (in octal digits) and --exclude (of files of the context).',
  )
}
