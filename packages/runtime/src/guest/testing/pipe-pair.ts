import { execFileSync } from 'node:child_process'
import { constants, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AttachOptions, attachGuest } from '../attach.ts'
import type { Guest } from '../guest.ts'
import { type AgentScript, ScriptedAgent } from './scripted-agent.ts'

/** Two named pipes in a folder of their own, with what a test put at their ends; all gone when disposed. */
export class PipePair implements AsyncDisposable {
  readonly inPath: string
  readonly outPath: string
  readonly #folder = mkdtempSync(join(tmpdir(), 'sandlot-pipes-'))
  readonly #guests: Guest[] = []
  readonly #agents: ScriptedAgent[] = []

  constructor() {
    this.inPath = join(this.#folder, 'in')
    this.outPath = join(this.#folder, 'out')
    execFileSync('mkfifo', [this.inPath, this.outPath])
  }

  agent(script: AgentScript = {}): ScriptedAgent {
    const agent = new ScriptedAgent(this, script)
    this.#agents.push(agent)
    return agent
  }

  async attach(options: Partial<AttachOptions> = {}): Promise<Guest> {
    const { inPath, outPath } = this
    const guest = await attachGuest({ inPath, outPath, resuming: false, ...options })
    this.#guests.push(guest)
    return guest
  }

  /** A guest with its agent. */
  async pair(script: AgentScript = {}): Promise<{ guest: Guest; agent: ScriptedAgent }> {
    const agent = this.agent(script)
    return { agent, guest: await this.attach() }
  }

  /** What a daemon wrote before it died. */
  async writeToGuest(bytes: Uint8Array): Promise<void> {
    const fd = openSync(this.inPath, constants.O_WRONLY | constants.O_NONBLOCK)
    const socket = new Socket({ fd, readable: false, writable: true })
    await new Promise<void>((resolve) => socket.write(bytes, () => resolve()))
    await new Promise((resolve) => socket.once('close', resolve).destroy())
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#guests.map((guest) => guest.close()))
    await Promise.all(this.#agents.map((agent) => agent.kill()))
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
