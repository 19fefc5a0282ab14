import { createHash } from 'node:crypto'
import {
  type EpisodeFunctionInput,
  type FunctionSpecInput,
  type QueuePutInput,
  SandlotError,
} from '@sandlot/protocol'
import type { ClientContext, Waiting } from '../connection/context.ts'
import { refuseUnknown } from '../connection/unknown-option.ts'
import { putBytes } from '../image/blob.ts'
import { resolveImage } from '../image/resolve.ts'
import { type Bundle, bundleAttempt, bundleModule, type Exported } from './bundle.ts'
import { Calls } from './calls.ts'
import { encodeInput } from './encode-input.ts'
import { FunctionCall, formatCallId } from './function-call.ts'
import { errorOf, readValue } from './function-error.ts'
import { mapInputs } from './map-inputs.ts'
import type { FunctionOptions, FunctionRow, MapInputsOptions } from './options.ts'
import { printLine } from './print-line.ts'

const AHEAD_DEFAULT = 2_000
const LABEL_CHARS = 60

const OPTIONS = [
  ...[
    'export',
    'from',
    'resources',
    'env',
    'network',
    'secrets',
    'timeout',
    'retry',
    'concurrency',
  ],
  ...['containers', 'idle', 'onPrint', 'onLog', 'onDetail', 'signal'],
] as (keyof FunctionOptions & string)[]

/** What a function needs to be run, by digest: the same for whoever has the same code and options. */
export interface Deployment {
  readonly label: string
  readonly function: FunctionSpecInput
}

/**
 * A function of a module that runs in containers: sandboxes that are used for one input after another, so for code that you trust. Its
 * module is bundled with all that it imports; the script that calls it is not run again.
 */
export class RemoteFunction<Input, Output> {
  readonly #context: ClientContext
  readonly #module: URL | string
  readonly #options: FunctionOptions
  readonly #calls: Calls
  #label = 'function'
  #deployment: Promise<Deployment> | undefined
  #queue: Promise<string> | undefined

  /** Made by `client.fn`. */
  constructor(
    context: ClientContext,
    module: URL | string,
    options: FunctionOptions,
    closing: AbortSignal,
  ) {
    refuseUnknown(options, OPTIONS)
    this.#context = context
    this.#module = module
    this.#options = options
    const print = options.onPrint ?? printLine
    this.#calls = new Calls(context, {
      closing,
      queue: (again) => this.#deployed(again),
      onLog: ({ task, channel, text }) => print({ label: this.#label, task, channel, text }),
    })
  }

  /**
   * Runs it once, and resolves with what it returned. Rejects with a `FunctionError` where it threw, and with a `SandlotError`:
   * `function_invalid` before anything is started, `function_timeout`, `function_exited`, or `function_lost` where its container was lost
   * and `retry` doesn't say to begin again.
   */
  async remote(input: Input, { signal }: Waiting = {}): Promise<Output> {
    const waiting = signal ? { signal } : {}
    const encoded = await encodeInput(this.#context, input, 'the input', waiting)
    const result = await this.#calls.call(encoded, signal)
    return (await readValue(this.#context, result, waiting)) as Output
  }

  /**
   * Runs it for each input, many at once, and gives rows as they land; a failed one is a row too. Inputs are taken no faster than rows
   * are read, so they may be endless. Leaving the loop takes no more inputs; those under way go on.
   */
  async *map(
    inputs: Iterable<Input> | AsyncIterable<Input>,
    options: MapInputsOptions = {},
  ): AsyncGenerator<FunctionRow<Output>> {
    refuseUnknown(options, ['ordered', 'ahead', 'signal'])
    const { ordered = false, ahead = AHEAD_DEFAULT, signal } = options
    if (!Number.isSafeInteger(ahead) || ahead < 1) {
      throw new SandlotError('invalid_request', `ahead is ${ahead}: say a whole number from 1 on`)
    }
    const waiting = signal ? { signal } : {}
    const ended = mapInputs({
      ...{ inputs, ordered, ahead, ...waiting },
      prepare: (input, index) => encodeInput(this.#context, input, `input ${index}`, waiting),
      run: async (encoded, index) => ({ index, result: await this.#calls.call(encoded, signal) }),
    })
    for await (const { index, result } of ended) {
      // A long value is fetched when its row is read: until then it waits on the daemon's disk.
      if (result.error) yield { index, ok: false, error: errorOf(result.error) }
      else {
        const value = (await readValue(this.#context, result, waiting)) as Output
        yield { index, ok: true, value }
      }
    }
  }

  /** Begins it, and resolves once that is durable. The call's id gives its result to any process, for a day. */
  async spawn(input: Input, waiting: Waiting = {}): Promise<FunctionCall<Output>> {
    const encoded = await encodeInput(this.#context, input, 'the input', waiting)
    const task = await this.#calls.put(encoded)
    const queue = await this.#deployed(false)
    return new FunctionCall(this.#context, formatCallId({ queue, group: this.#calls.group, task }))
  }

  /** Bundles it, uploads what the daemon lacks, and builds what it starts from. Calls do so by themselves. */
  deploy(): Promise<Deployment> {
    this.#deployment ??= this.#deploy().catch((error) => {
      this.#deployment = undefined
      throw error
    })
    return this.#deployment
  }

  /**
   * What a run needs to have it as its worker, and its grader, which then runs in the same containers. Runs ask for it by themselves.
   * Throws `function_invalid`, and `invalid_request` for an option that is the run's to say.
   */
  async asWorker(grader?: RemoteFunction<never, unknown>): Promise<EpisodeFunctionInput> {
    this.#refuse(['timeout', 'retry'], 'the run says that of its episodes')
    const others = [
      'from',
      'resources',
      'env',
      'network',
      'secrets',
      'concurrency',
      'containers',
      'idle',
    ] as const
    if (grader)
      grader.#refuse(
        [...others, 'timeout', 'retry'],
        'a grader runs in the containers of its episode',
      )
    const bundle = await bundleAttempt(this.#exported(), grader ? grader.#exported() : undefined)
    const { containers, idle } = this.#options
    return {
      ...(await this.#upload({ ...bundle, name: 'attempt' })),
      ...(containers === undefined ? {} : { containers }),
      ...(idle === undefined ? {} : { idle }),
    }
  }

  #exported(): Exported {
    return { module: this.#module, name: this.#options.export ?? 'default' }
  }

  #refuse(options: readonly (keyof FunctionOptions)[], why: string): void {
    const given = options.find((name) => this.#options[name] !== undefined)
    if (given === undefined) return
    throw new SandlotError('invalid_request', `leave \`${given}\` out of client.fn: ${why}`)
  }

  #deployed(again: boolean): Promise<string> {
    if (again) this.#queue = undefined
    this.#queue ??= this.#putQueue().catch((error) => {
      this.#queue = undefined
      throw error
    })
    return this.#queue
  }

  async #putQueue(): Promise<string> {
    const { label, function: definition } = await this.deploy()
    const { retry, containers, idle } = this.#options
    const autoscale = {
      ...(containers === undefined ? {} : { maxContainers: containers }),
      ...(idle === undefined ? {} : { idle }),
    }
    const json: QueuePutInput = {
      function: definition,
      autoscale,
      kind: 'calls',
      ...(retry ? { retry } : {}),
    }
    const name = `fn.${label.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, LABEL_CHARS)}.${hashOf(json)}`
    await this.#context.http.json('putQueue', { parameters: { name }, json })
    return name
  }

  async #deploy(): Promise<Deployment> {
    const { module, name } = this.#exported()
    const { code, label } = await bundleModule(module, name)
    this.#label = label
    const { timeout } = this.#options
    const definition = await this.#upload({ code, label, name })
    return { label, function: { ...definition, ...(timeout === undefined ? {} : { timeout }) } }
  }

  async #upload({ code, label, name }: Bundle & Pick<Exported, 'name'>) {
    const { from, onLog, onDetail, signal } = this.#options
    const { resources, env, network, secrets, concurrency } = this.#options
    const bundle = await putBytes(this.#context, code)
    const building = {
      ...(onLog ? { onLog } : {}),
      ...(onDetail ? { onDetail } : {}),
      ...(signal ? { signal } : {}),
    }
    const start =
      from === undefined ? {} : { from: await resolveImage(this.#context, from, building) }
    return {
      ...{ bundle, export: name, label, ...start },
      ...(resources ? { resources } : {}),
      ...(env ? { env: { ...env } } : {}),
      ...(network ? { network } : {}),
      ...(secrets ? { secrets } : {}),
      ...(concurrency === undefined ? {} : { concurrency }),
    }
  }
}

function hashOf(json: QueuePutInput): string {
  return createHash('sha256').update(JSON.stringify(json)).digest('hex').slice(0, 20)
}
