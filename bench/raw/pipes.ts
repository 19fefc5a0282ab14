import { closeSync, constants, openSync } from 'node:fs'
import { Socket } from 'node:net'

/** The host's ends of a sandbox's standard input and output, open before it starts. */
export interface RawPipes extends Disposable {
  readonly input: Socket
  readonly output: Socket
}

export function openRawPipes(paths: { readonly in: string; readonly out: string }): RawPipes {
  const { O_NONBLOCK, O_RDONLY, O_RDWR } = constants
  const inFd = openSync(paths.in, O_RDWR | O_NONBLOCK)
  const outFd = openOr(paths.out, O_RDONLY | O_NONBLOCK, inFd)
  const input = new Socket({ fd: inFd, readable: false, writable: true })
  const output = new Socket({ fd: outFd, readable: true, writable: false })
  output.pause()
  // The sandbox's end is seen by its cgroup; a broken pipe says nothing more.
  for (const socket of [input, output]) socket.on('error', () => {})
  return {
    input,
    output,
    [Symbol.dispose]: () => {
      input.destroy()
      output.destroy()
    },
  }
}

function openOr(path: string, flags: number, held: number): number {
  try {
    return openSync(path, flags)
  } catch (error) {
    closeSync(held)
    throw error
  }
}
