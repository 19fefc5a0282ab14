import type { SandboxSpec } from '@sandlot/runtime'
import { TRUE_COMMAND } from '../spec.ts'
import { RawAgent } from './agent.ts'
import type { RawMachine, RawSandbox } from './machine.ts'

/** Starts a raw sandbox whose program is the agent, opens a world in it, and waits for one command's result. */
export async function startWorldToResult(raw: RawMachine, spec: SandboxSpec): Promise<RawSandbox> {
  const sandbox = await raw.start('agent', spec)
  const agent = await RawAgent.attach(sandbox.pipes)
  await agent.openWorld(spec)
  await agent.exec(TRUE_COMMAND, 'buffered').done
  return sandbox
}
