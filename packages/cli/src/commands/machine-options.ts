/** From options to what a sandbox has of its machine: GPUs, and an interface of its own. */
import type { NetworkChoiceInput, ResourcesInput } from '@sandlot/protocol'
import { Mistake } from '../failure.ts'
import { type PolicyOptions, policyOf } from './network.ts'

/** `H100`, `any`, `2`, `H100:2`. @throws Mistake */
export function gpuOf(text: string | undefined): ResourcesInput['gpu'] {
  if (text === undefined) return undefined
  const [, type, digits] = /^([a-z][^:]*?|)(?:(?:^|:)(\d{1,4}))?$/i.exec(text) ?? []
  if (type === undefined || (type === '' && digits === undefined)) throw noGpu(text)
  if (digits === undefined) return type
  return { ...(type === '' ? {} : { type }), count: Number(digits) }
}

export interface NetworkOptions extends PolicyOptions {
  readonly openNetwork?: boolean
}

/** Undefined where nothing is said. @throws Mistake */
export function networkChoiceOf(options: NetworkOptions): NetworkChoiceInput | undefined {
  const { openNetwork, ...policy } = options
  const choice = policyOf(policy)
  if (!openNetwork) return choice
  if (choice === undefined) return 'open'
  throw new Mistake(
    '--open-network reaches every public address: no policy says anything beside it',
    'leave out --allow and --packages, or --open-network',
  )
}

function noGpu(text: string): Mistake {
  return new Mistake(
    `--gpu ${text} names no GPU`,
    'write a model, any, a count, or both: --gpu H100, --gpu 2, --gpu H100:2',
  )
}
