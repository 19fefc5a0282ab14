import type { BuildStep } from '@sandlot/protocol'

const CHARACTERS_MAX = 120

/** A step in one line, as a person would write it. */
export function describeStep(step: BuildStep): string {
  const text = `${step.kind} ${argument(step)}`.replace(/\s+/g, ' ').trim()
  return text.length > CHARACTERS_MAX ? `${text.slice(0, CHARACTERS_MAX - 1)}…` : text
}

function argument(step: BuildStep): string {
  switch (step.kind) {
    case 'run':
      return typeof step.command === 'string' ? step.command : step.command.join(' ')
    case 'function':
      return step.key
    case 'copy':
      return `to ${step.to}`
    case 'copyFrom':
      return `${step.paths.join(' ')} to ${step.to}`
    case 'env':
      return Object.keys(step.env).join(' ')
    case 'workdir':
      return step.path
    case 'user':
      return step.user
    case 'shell':
      return step.command.join(' ')
    case 'command':
      return [...(step.entrypoint ?? []), ...(step.command ?? [])].join(' ')
    case 'labels':
      return Object.keys(step.labels).join(' ')
  }
}
