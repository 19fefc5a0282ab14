import type {
  FunctionSpecInput,
  NetworkPolicy,
  ResourcesInput,
  TaskRetryInput,
} from '@sandlot/protocol'
import type { Waiting } from '../connection/context.ts'
import type { LogOptions } from '../connection/logged-work.ts'
import type { ImageLike } from '../image/resolve.ts'

/** What a handler gets beside its input. */
export interface FunctionContext {
  /** Aborts when nobody waits any more: its time is over. */
  readonly signal: AbortSignal
  /** 1 the first time. */
  readonly attempt: number
}

type AnyFunction = (...args: never[]) => unknown

/** Names of what a module exports that can be called. */
export type FunctionNames<Module> = {
  [Name in keyof Module]: Module[Name] extends AnyFunction ? Name : never
}[keyof Module] &
  string

/** Of one function of a module, or of a function's own type. */
export type HandlerOf<Module, Name> = Module extends AnyFunction
  ? Module
  : Name extends keyof Module
    ? Extract<Module[Name], AnyFunction>
    : never

export type InputOf<Handler> = Handler extends AnyFunction
  ? Parameters<Handler> extends readonly []
    ? // biome-ignore lint/suspicious/noConfusingVoidType: the argument may be left out
      void
    : Parameters<Handler>[0]
  : never

export type OutputOf<Handler> = Handler extends AnyFunction ? Awaited<ReturnType<Handler>> : never

/** A line that a function printed. */
export interface FunctionLog {
  /** What the function is called. */
  readonly label: string
  /** Id of the input that it was printed for. */
  readonly task: string
  readonly channel: 'stdout' | 'stderr'
  readonly text: string
}

export interface FunctionOptions<Name extends string = string> extends LogOptions {
  /** Which export of the module. Default `default`. */
  readonly export?: Name
  /** What its containers start from: anything with glibc 2.28 or newer. Default: the smallest image that runs Node.js. */
  readonly from?: ImageLike
  /** Of each container. Default memory: 1 GiB at most. */
  readonly resources?: ResourcesInput
  readonly env?: Readonly<Record<string, string>>
  /** What it may reach. Default: nothing. */
  readonly network?: NetworkPolicy
  /** What is put into its requests on their way out: `{ API_KEY: { from: 'openai', hosts: ['api.example.org'], tls: 'terminate' } }`. */
  readonly secrets?: FunctionSpecInput['secrets']
  /** What one input may take. Default 5 minutes. */
  readonly timeout?: string | number
  /**
   * What is begun again. Default: nothing, as an input may have had its effect. `infra`: its container was lost; `error`: the handler
   * threw, took too long or ended its process.
   */
  readonly retry?: TaskRetryInput
  /** Inputs that one container works on at once. Default 1. */
  readonly concurrency?: number
  /** Containers at most. Default 8. */
  readonly containers?: number
  /** A container that had nothing to do for so long ends. Default 1 minute. */
  readonly idle?: string | number
  /** Gets each line that the function prints. Default: it goes to this process's standard error, after the function's name. */
  readonly onPrint?: (line: FunctionLog) => void
}

export interface MapInputsOptions extends Waiting {
  /** Rows come in the order of their inputs, not as they land. */
  readonly ordered?: boolean
  /** Inputs that are taken ahead of what was read of the rows. Default 2,000. */
  readonly ahead?: number
}

/** What became of one input. */
export type FunctionRow<Output> =
  | { readonly index: number; readonly ok: true; readonly value: Output }
  | { readonly index: number; readonly ok: false; readonly error: Error }
