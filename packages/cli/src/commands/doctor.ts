/** `sandlot doctor`: what this machine has and lacks, and the command that mends each. Brings nothing. */
import { version } from 'node:process'
import { Failure } from '../failure.ts'
import { formatTable } from '../output/table.ts'
import { printJson, printLine } from '../output/terminal.ts'
import { findNative } from '../setup/native.ts'
import { findRunsc } from '../setup/runsc.ts'
import { findPromises } from './promises.ts'

export interface DoctorOptions {
  readonly json?: boolean
  /** Also starts a sandbox. */
  readonly deep?: boolean
}

interface Finding {
  readonly name: string
  readonly ok: boolean
  readonly found: string
  readonly mend?: string
  /** False: a daemon runs without it, worse. */
  readonly required: boolean
}

interface Programs {
  runsc?: string
  helper?: string
  agent?: string
}

/** Returns 0 when a daemon can run here. */
export async function doctorCommand({ json, deep }: DoctorOptions): Promise<number> {
  const findings = await examine(deep === true)
  const fit = findings.every(isFit)
  if (json) printJson({ ok: fit, findings })
  else printLine(describe(findings, fit))
  return fit ? 0 : 1
}

async function examine(deep: boolean): Promise<Finding[]> {
  const programs: Programs = {}
  const findings: Finding[] = [{ name: 'Node.js', ok: true, found: version, required: true }]
  try {
    Object.assign(programs, await findNative())
    const runsc = await findRunsc()
    if (runsc !== undefined) programs.runsc = runsc
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const { message, hint } = error
    findings.push({ name: 'programs', ok: false, found: message, mend: hint, required: true })
  }
  const { probeMachine } = await import('@sandlot/server')
  for (const finding of await probeMachine({ gvisor: programs })) {
    const program = PROGRAM_OF[finding.name]
    findings.push(program && !programs[program] ? notYet(finding.name) : finding)
  }
  const promises = await findPromises()
  if (promises) findings.push(promises)
  if (deep && findings.every(isFit)) findings.push(await trial(programs))
  return findings
}

/** The program that a finding of the probe is about. */
const PROGRAM_OF: Readonly<Record<string, keyof Programs>> = {
  runsc: 'runsc',
  'host helper': 'helper',
  'guest agent': 'agent',
}

function isFit({ ok, required }: Finding): boolean {
  return ok || !required
}

function notYet(name: string): Finding {
  return { name, ok: false, found: 'not there yet', mend: './sandlot setup', required: true }
}

async function trial(gvisor: Programs): Promise<Finding> {
  const { tryMachine } = await import('@sandlot/server')
  const startedMs = performance.now()
  const name = 'sandbox'
  try {
    await tryMachine({ gvisor })
    const found = `started and stopped in ${Math.round(performance.now() - startedMs)} ms`
    return { name, ok: true, found, required: true }
  } catch (error) {
    const { message } = error as Error
    const mend = 'read the message; SANDLOT_LOG_LEVEL=debug ./sandlot serve says more'
    return { name, ok: false, found: message, mend, required: true }
  }
}

function describe(findings: readonly Finding[], fit: boolean): string {
  const rows = findings.map(({ name, ok, found, required }) => [
    ok ? 'ok' : required ? 'MISSING' : 'worse',
    name,
    found,
  ])
  const mends = findings.flatMap(({ ok, name, mend }) => (ok || !mend ? [] : [`${name}: ${mend}`]))
  return [
    formatTable(['', 'WHAT', 'FOUND'], rows),
    ...mends,
    fit ? 'this machine can run sandboxes' : 'this machine can not run sandboxes yet',
  ].join('\n\n')
}
