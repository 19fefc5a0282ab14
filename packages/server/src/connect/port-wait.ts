import { SandlotError } from '@sandlot/protocol'
import { GuestTimeout } from '@sandlot/runtime'
import { checkPort, listPorts } from '../ports/ports.ts'
import type { Operation } from './session.ts'

/** Waits until something listens on a port; what waits uses the sandbox. */
export const portWait: Operation<'port.wait'> = async (stream, request, session) => {
  const { node, caller } = session
  const { sandbox, port, timeout: timeoutMs } = request
  checkPort(port)
  const { signal } = stream
  using lent = await node.sandboxes.lend(sandbox, { project: caller.project, signal })
  try {
    await lent.guest.ports.wait(port, { signal, timeoutMs })
    return {}
  } catch (error) {
    if (signal.aborted) throw error
    if (!(error instanceof GuestTimeout)) throw await lent.explain(error)
    const listening = (await listPorts(lent).catch(() => [])).map((each) => each.port)
    const shown = listening.slice(0, PORTS_SHOWN).join(', ')
    const others = shown === '' ? '' : `; something listens on ${shown}`
    const message = `nothing listened on port ${port} within ${timeoutMs} ms${others}`
    throw new SandlotError('timeout', message, {
      hint: 'Look at what the server printed, or give it longer: `timeout`.',
      details: { port, listening },
    })
  }
}

const PORTS_SHOWN = 8
