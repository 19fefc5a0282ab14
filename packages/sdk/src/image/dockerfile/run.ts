import { argumentBytes, LIMITS, type NetworkPolicy } from '@sandlot/protocol'
import type { LocalStep } from '../local-step.ts'
import { type Instruction, refused } from './instruction.ts'
import type { Stage } from './stage.ts'

/** `RUN`, as a list or for the stage's shell; a here-document alone is the command itself. */
export function runStep(stage: Stage, instruction: Instruction): LocalStep {
  const network = networkOf(stage, instruction)
  const env = stage.variables.forCommand()
  return {
    kind: 'run',
    command: checked(instruction, commandOf(instruction)),
    ...(env ? { env: { ...env } } : {}),
    ...(network === undefined ? {} : { network }),
    ...(stage.timeout === undefined ? {} : { timeout: stage.timeout }),
  }
}

function checked<C extends string | string[]>(instruction: Instruction, command: C): C {
  const isText = typeof command === 'string'
  const sizeBytesMax = isText ? LIMITS.stepTextBytes : LIMITS.argvBytes
  if (argumentBytes(isText ? [command] : command) <= sizeBytesMax) return command
  throw refused(
    instruction,
    `is longer than ${sizeBytesMax} bytes`,
    'Write it as a file, COPY that into the image, and run it.',
  )
}

function commandOf(instruction: Instruction): string | string[] {
  const { list, heredocs, text, shellText } = instruction
  if (list) {
    if (list.length > 0) return [...list]
    throw refused(instruction, 'is empty', 'Give it a command.')
  }
  const [only] = heredocs
  if (only?.mark === text) {
    const interpreter = /^#!\s*(\S.*)\n/.exec(only.content)
    if (!interpreter) return only.content
    // A here-document of another language: its first line says who reads it.
    const mark = `SANDLOT_${only.name}`
    return `cat >/tmp/.sandlot-run <<'${mark}'\n${only.content}${mark}\nchmod +x /tmp/.sandlot-run && /tmp/.sandlot-run && rm /tmp/.sandlot-run`
  }
  if (shellText.trim() === '') throw refused(instruction, 'is empty', 'Give it a command.')
  return shellText
}

function networkOf(stage: Stage, instruction: Instruction): NetworkPolicy | undefined {
  let network: NetworkPolicy | undefined
  for (const [name, value] of instruction.flags) {
    if (name === 'network' && value === 'none') network = 'none'
    else if (name === 'network' && value === 'default') network = undefined
    else if (name === 'mount' && /(^|,)type=(cache|tmpfs)(,|$)/.test(value)) {
      const { line } = instruction
      stage.note(`Dockerfile line ${line}: --mount=${value} is left out: steps are kept whole`)
    } else {
      throw refused(
        instruction,
        `--${name}${value === '' ? '' : `=${value}`} is not supported`,
        'Bring files in by COPY; nothing secret can be in a build, and its network is set on the image.',
      )
    }
  }
  return network
}
