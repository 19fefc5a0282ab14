import type { ROUTES, RouteName } from '@sandlot/protocol'
import type { Logger } from 'pino'
import type { z } from 'zod'
import type { Caller } from './keys.ts'

type Routes = typeof ROUTES

/** Bytes of a streamed body, read as fast as they are taken. */
export type Bytes = AsyncIterable<Uint8Array>

type QueryOf<N extends RouteName> = Routes[N] extends { query: infer Q extends z.ZodType }
  ? z.output<Q>
  : Record<never, never>

type BodyOf<N extends RouteName> = Routes[N] extends { body: infer B }
  ? B extends z.ZodType
    ? z.output<B>
    : Bytes
  : undefined

type AnswerOf<N extends RouteName> = Routes[N]['answer'] extends infer A
  ? A extends z.ZodType
    ? z.input<A>
    : A extends 'bytes'
      ? BytesAnswer
      : A extends 'lines'
        ? AsyncIterable<unknown>
        : A extends 'text'
          ? TextAnswer
          : HeadAnswer | undefined
  : never

export interface BytesAnswer {
  readonly body: Bytes
  readonly headers?: Readonly<Record<string, string>>
}
export interface TextAnswer {
  readonly text: string
  readonly contentType: string
}
export interface HeadAnswer {
  readonly headers: Readonly<Record<string, string>>
}

/** One request, parsed and allowed. */
export interface Call<N extends RouteName> {
  /** Of the path, decoded, not checked. */
  readonly params: Readonly<Record<string, string>>
  readonly query: QueryOf<N>
  readonly body: BodyOf<N>
  readonly caller: Caller
  /** Aborts when the client is gone. */
  readonly signal: AbortSignal
  /** As the client sent it, within its project. */
  readonly idempotencyKey: string | undefined
  readonly log: Logger
}

export type Handler<N extends RouteName> = (call: Call<N>) => Promise<AnswerOf<N>>

/** One handler a route: a route without one doesn't compile. `connect` is an upgrade, not a request. */
export type Handlers = { readonly [N in Exclude<RouteName, 'connect'>]: Handler<N> }
