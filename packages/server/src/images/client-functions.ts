import { type FunctionLine, SandlotError } from '@sandlot/protocol'
import { type BuildWait, type FunctionCall, ImageError } from '@sandlot/runtime'
import type { Handlers } from '../http/call.ts'
import { sandboxIdOf } from '../sandboxes/use.ts'

interface Awaited {
  readonly project: string
  readonly finish: (error: string | undefined) => void
}

/** Functions that clients run as steps of builds, each in a sandbox that waits for it. */
export class ClientFunctions {
  readonly #awaited = new Map<string, Awaited>()

  /** How one who waits for a build runs them: he is told by a line, and says himself when it is done. */
  of(project: string, tell: (line: FunctionLine) => void): NonNullable<BuildWait['onFunction']> {
    return async (call, { signal }) => {
      signal.throwIfAborted()
      const done = Promise.withResolvers<string | undefined>()
      const leave = () => done.reject(signal.reason)
      signal.addEventListener('abort', leave, { once: true })
      this.#awaited.set(call.sandbox, { project, finish: done.resolve })
      try {
        tell({ kind: 'function', ...call })
        const error = await done.promise
        if (error !== undefined) throw failed(call, error)
      } finally {
        signal.removeEventListener('abort', leave)
        this.#awaited.delete(call.sandbox)
      }
    }
  }

  /** Throws `sandbox_unknown` where none is waited for. */
  finish(project: string, sandbox: string, error: string | undefined): void {
    const awaited = this.#awaited.get(sandbox)
    if (awaited?.project !== project) {
      throw new SandlotError('sandbox_unknown', `no build waits for a function in ${sandbox}`, {
        hint: 'Its build is over, or begins the step again: read its answer.',
      })
    }
    awaited.finish(error)
  }
}

export function functionHandlers(functions: ClientFunctions): Pick<Handlers, 'finishFunction'> {
  return {
    finishFunction: async ({ caller, params, body }) => {
      functions.finish(caller.project, sandboxIdOf(params.id), body.error)
      return undefined
    },
  }
}

function failed({ key }: FunctionCall, error: string): ImageError {
  return new ImageError('image_build_failed', `the function ${key} failed: ${error}`, {
    hint: 'Mend the function. Its key stays the same: what failed is not kept.',
  })
}
