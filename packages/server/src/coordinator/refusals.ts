import { SandlotError } from '@sandlot/protocol'

export function unknownRun(name: string): SandlotError {
  return new SandlotError('run_unknown', `there is no run ${name}`)
}

export function beingReadBack(name: string): SandlotError {
  return new SandlotError('draining', `the run ${name} is being read back from its log`, {
    hint: 'Try again in a moment.',
  })
}

export function runsItself(name: string): SandlotError {
  return new SandlotError('invalid_request', `the daemon itself runs the episodes of ${name}`, {
    hint: 'A run of programs or of a function takes no workers: read its results.',
  })
}
