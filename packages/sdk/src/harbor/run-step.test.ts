import { SandlotError } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { Image } from '../image/image.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { Sandboxes } from '../sandbox/sandboxes.ts'
import { runStep, type StepRun } from './run-step.ts'

const REWARD = '/logs/verifier/reward.txt'

/** A sandbox that has these files, and a verifier that writes nothing. */
function sandboxWith(files: Map<string, string>): Sandbox {
  const missing = () => Promise.reject(new SandlotError('file_not_found', 'it is not there'))
  return {
    exec: async () => ({ exitCode: 1, stdout: '', stderr: 'crashed', timedOut: false }),
    files: {
      readText: async (path: string, { length }: { length: number }) =>
        files.get(path)?.slice(0, length) ?? (await missing()),
      write: async (path: string, text: string) => void files.set(path, text),
      remove: async (path: string) => {
        for (const each of files.keys()) if (each.startsWith(path)) files.delete(each)
      },
      changeMode: async () => {},
      download: missing,
      upload: missing,
    },
    [Symbol.asyncDispose]: async () => {},
  } as unknown as Sandbox
}

const environment = {
  image: Image.registry('v:1'),
  resources: {},
  env: {},
  network: 'none',
} as const
const verifier = { timeoutMs: 1_000, files: [], env: {} }

function stepOf(sandbox: Sandbox, own: Sandbox, separate: boolean): StepRun {
  return {
    task: { key: 't', directory: '/t', instruction: 'Do it.', environment, agent: {}, notes: [] },
    step: {
      ...{ name: 'a', instruction: 'Do it.', agent: {}, workdir: [] },
      verifier: separate
        ? { ...verifier, separate: { environment, artifacts: [{ path: '/logs', exclude: [] }] } }
        : verifier,
    },
    ...{ agent: 'nop', open: 'none', sandbox, signal: new AbortController().signal },
    sandboxes: { create: async () => own } as unknown as Sandboxes,
  }
}

test.each([false, true])(
  'a verdict that was there before its verifier is none (in an environment of its own: %s)',
  async (separate) => {
    // As an agent leaves it, and as it comes along with what is passed on.
    const [main, own] = [
      sandboxWith(new Map([[REWARD, '1']])),
      sandboxWith(new Map([[REWARD, '1']])),
    ]
    await expect(runStep(stepOf(main, own, separate))).rejects.toThrow('its verifier left no')
  },
)

test('a verdict without an end is none', async () => {
  const files = new Map<string, string>()
  const main = sandboxWith(files)
  const exec = async () => {
    files.set(REWARD, '1'.repeat(100_000))
    return { exitCode: 0, stdout: '', stderr: '', timedOut: false }
  }
  const step = stepOf({ ...main, exec } as unknown as Sandbox, main, false)
  await expect(runStep(step)).rejects.toThrow('more than 65536 characters')
})
