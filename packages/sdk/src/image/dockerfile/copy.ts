/** `COPY` and `ADD`. */
import { tarOfFiles, tarOfTexts } from '../copied-files.ts'
import type { CopyOptions, LocalStep } from '../local-step.ts'
import { archiveTar } from './archive.ts'
import type { Found } from './context.ts'
import { type Instruction, refused } from './instruction.ts'
import { closed, type Stage } from './stage.ts'
import { expandedText, wordOf, wordsOf } from './words.ts'

export async function copySteps(stage: Stage, instruction: Instruction): Promise<LocalStep[]> {
  const { sources, to } = operands(stage, instruction)
  const { from, exclude, ...options } = flagsOf(stage, instruction)
  if (from !== undefined) {
    if (exclude.length > 0) throw unsupportedFlag(instruction, 'exclude')
    const paths = sources.map((path) => (path.startsWith('/') ? path : `/${path}`))
    return [{ kind: 'copyFrom', source: stage.other(from, instruction), paths, to, ...options }]
  }
  const texts = heredocTexts(stage, instruction, sources)
  const found = await findAll(
    stage,
    instruction,
    sources.filter((source) => !isHeredoc(source)),
  )
  const steps: LocalStep[] = []
  if (texts.length > 0) steps.push(textStep(texts, directoryOf(to, texts.length + found.length)))
  if (found.length > 0) {
    steps.push(filesStep(stage, found, directoryOf(to, texts.length + found.length)))
  }
  return steps.map((step) => ({ ...step, ...options }))
}

/** As `COPY`, but an archive of this machine is unpacked. */
export async function addSteps(stage: Stage, instruction: Instruction): Promise<LocalStep[]> {
  const { sources, to } = operands(stage, instruction)
  const remote = sources.find((source) => /^([a-z]+:\/\/|git@)/i.test(source))
  if (remote !== undefined) {
    throw refused(
      instruction,
      `of ${remote} is not supported`,
      'Download it into the context, or by RUN from a host that the image’s network allows.',
    )
  }
  const { from, exclude: _, ...options } = flagsOf(stage, instruction)
  if (from !== undefined) throw unsupportedFlag(instruction, 'from')
  if (sources.some(isHeredoc)) return await copySteps(stage, instruction)
  const found = await findAll(stage, instruction, sources)
  const steps: LocalStep[] = []
  for (const each of found) {
    const archive = each.directory ? undefined : await archiveTar(instruction, each)
    if (archive) {
      const content = { from: each.name, tar: async () => ({ bytes: archive(), file: false }) }
      steps.push({ kind: 'copy', content, to, ...options })
    } else {
      steps.push({ ...filesStep(stage, [each], directoryOf(to, found.length)), ...options })
    }
  }
  return steps
}

function operands(stage: Stage, instruction: Instruction): { sources: string[]; to: string } {
  const { list, text } = instruction
  const { lookup } = stage.variables
  const words = list ? list.map((word) => wordOf(word, lookup)) : wordsOf(text, lookup)
  const all = words.map((word) => closed(instruction, word))
  const to = all.pop()
  if (to !== undefined && all.length > 0) return { sources: all, to }
  throw refused(instruction, 'needs a source and a destination', 'Write COPY source destination.')
}

function flagsOf(
  stage: Stage,
  instruction: Instruction,
): CopyOptions & { from?: string; exclude: readonly string[] } {
  const exclude: string[] = []
  const options: { from?: string; owner?: string; mode?: number } = {}
  for (const [name, raw] of instruction.flags) {
    const value = closed(instruction, wordOf(raw, stage.variables.lookup))
    if (name === 'from') options.from = value
    else if (name === 'chown') options.owner = value
    else if (name === 'chmod' && /^[0-7]{3,4}$/.test(value))
      options.mode = Number.parseInt(value, 8)
    else if (name === 'exclude') exclude.push(value)
    // How its layer is kept is the daemon's business.
    else if (name !== 'link') throw unsupportedFlag(instruction, `${name}=${value}`)
  }
  return { ...options, exclude }
}

async function findAll(
  stage: Stage,
  instruction: Instruction,
  sources: readonly string[],
): Promise<readonly Found[]> {
  const found: Found[] = []
  for (const source of sources) {
    const here = await stage.context.find(source)
    if (here.length === 0) {
      throw refused(
        instruction,
        `finds no ${source} in ${stage.context.directory}`,
        'Check the path, which is relative to the context, and the .dockerignore.',
      )
    }
    found.push(...here)
  }
  return found
}

function filesStep(stage: Stage, found: readonly Found[], to: string): LocalStep {
  const files = found.flatMap((each) => each.files)
  const file = found.length === 1 && found[0]?.directory === false && !to.endsWith('/')
  return {
    kind: 'copy',
    content: {
      from: `${stage.context.directory}: ${found.map(({ name }) => name).join(', ')}`,
      tar: async () => tarOfFiles(files, file),
    },
    to,
  }
}

function textStep(texts: readonly { name: string; text: string }[], to: string): LocalStep {
  const file = texts.length === 1 && !to.endsWith('/')
  return {
    kind: 'copy',
    content: { from: 'a here-document', tar: async () => tarOfTexts(texts, file) },
    to,
  }
}

function heredocTexts(stage: Stage, instruction: Instruction, sources: readonly string[]) {
  return sources.filter(isHeredoc).map((source) => {
    const name = source.replace(/^<<-?/, '')
    const heredoc = instruction.heredocs.find((each) => each.name === name)
    if (!heredoc) throw refused(instruction, `has no text for ${source}`, `End it with ${name}.`)
    const { content, expands } = heredoc
    const text = expands
      ? closed(instruction, expandedText(content, stage.variables.lookup))
      : content
    return { name, text }
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
    'Use --from, --chown and --chmod (in octal digits).',
  )
}
