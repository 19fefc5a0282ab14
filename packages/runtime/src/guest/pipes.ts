import { close, constants, fstat, open } from 'node:fs'
import { Socket } from 'node:net'
import { promisify } from 'node:util'
import { GuestLost } from './guest-error.ts'

const openFile = promisify(open)
const closeFile = promisify(close)
const statFile = promisify(fstat)

/** The daemon's ends of the two named pipes of a guest. */
export interface Pipes {
  /** Towards the guest. */
  readonly input: Socket
  /** From the guest. Its end of file is the sandbox's death. Its bytes go to `onBytes` from `resume` on. */
  readonly output: Socket
  /** Gets what came; the array is written to again as soon as it returns. */
  onBytes: (bytes: Uint8Array) => void
  /** Closes both; the guest lives on. Idempotent. */
  close(): Promise<void>
}

export interface PipePaths {
  /** FIFO that is the guest's standard input. */
  readonly inPath: string
  /** FIFO that is the guest's standard output. */
  readonly outPath: string
}

/**
 * Opens both pipes without waiting for a peer. `in` is opened for reading too, so that the guest gets no end
 * of file while the daemon holds it, and is never read.
 *
 * `resuming`: somebody is expected at the other end already. If nobody is, the guest is lost (`exited`): a FIFO that
 * never had a writer since it was opened would give no end of file.
 */
export async function openPipes(paths: PipePaths, resuming: boolean): Promise<Pipes> {
  const held = new Set<number>()
  try {
    const { O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY } = constants
    const hold = async (path: string, flags: number) => {
      const descriptor = await openFile(path, flags | O_NONBLOCK)
      held.add(descriptor)
      if (!(await statFile(descriptor)).isFIFO()) throw new Error(`${path} is not a named pipe`)
      return descriptor
    }
    const probe = resuming ? await hold(paths.inPath, O_WRONLY) : undefined
    const input = await hold(paths.inPath, O_RDWR)
    const output = await hold(paths.outPath, O_RDONLY)
    if (probe !== undefined) {
      held.delete(probe)
      await closeFile(probe)
    }
    held.clear()
    return wrap(input, output)
  } catch (error) {
    await Promise.allSettled([...held].map((descriptor) => closeFile(descriptor)))
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') {
      throw new GuestLost('exited', 'nobody is at the other end of its pipe', error)
    }
    throw new GuestLost('io', (error as Error).message, error)
  }
}

function wrap(inputDescriptor: number, outputDescriptor: number): Pipes {
  const input = new Socket({ fd: inputDescriptor, readable: false, writable: true })
  const output = new Socket({
    fd: outputDescriptor,
    readable: true,
    writable: false,
    onread: {
      buffer: () => {
        readBuffer ??= new Uint8Array(READ_BYTES)
        return readBuffer
      },
      callback: (count, buffer) => {
        pipes.onBytes(buffer.subarray(0, count))
        return true
      },
    },
  })
  output.pause()
  const gone = Promise.all([closed(input), closed(output)])
  const pipes: Pipes = {
    input,
    output,
    onBytes: () => {},
    close: async () => {
      input.destroy()
      output.destroy()
      await gone
    },
  }
  return pipes
}

/** One read at most: a quarter of what a pipe holds. */
const READ_BYTES = 2 ** 18
/** One for all guests, as what is read is handled at once. */
let readBuffer: Uint8Array | undefined

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve())
  })
}
