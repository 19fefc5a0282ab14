import type { NetworkPolicy, Resources } from '@sandlot/protocol'
import type { Guest } from '../../guest/guest.ts'
import type { Image } from '../image.ts'

export interface StepMachineRequest {
  /** What its world `main` shows. It must stay until the machine is disposed of. */
  readonly image: Image
  readonly network: NetworkPolicy
  /** A client works in it itself: whose it is, and what it may use. */
  readonly client?: { readonly project: string; readonly resources: Resources }
}

/**
 * A sandbox in which one step of a build runs. Who opens it decides what it may use; it is ended when it is disposed of, with all
 * that runs in it.
 */
export interface StepMachine extends AsyncDisposable {
  /** Its id, by which a client finds it. */
  readonly sandbox: string
  readonly guest: Guest
  /** What commands need to reach what the policy allows, such as proxies. The step's own variables win. */
  readonly env: Readonly<Record<string, string>>
  /** What the step changed, as a tar: a deletion is a character device 0/0, opaque directories are expanded. */
  difference(wait: { readonly signal: AbortSignal }): AsyncIterable<Uint8Array>
  /** What an error of the guest means, for instance that the sandbox met its memory limit. */
  explain(error: unknown): Promise<unknown>
}

export type OpenStepMachine = (
  request: StepMachineRequest,
  wait: { readonly signal: AbortSignal },
) => Promise<StepMachine>
