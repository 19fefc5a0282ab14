import { SandlotError } from '@sandlot/protocol'

export function unknownRun(name: string): SandlotError {
  return new SandlotError('run_unknown', `there is no run ${name}`)
}

export function beingReadBack(name: string): SandlotError {
  return new SandlotError('draining', `the run ${name} is being read back from its log`, {
    hint: 'Try again in a moment.',
  })
}
