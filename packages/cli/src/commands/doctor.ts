/** `sandlot doctor`: what this machine has and lacks, and the command that mends each. */
import { version } from 'node:process'
import { Failure } from '../failure.ts'
import { formatTable } from '../output/table.ts'
import { printJson, printLine } from '../output/terminal.ts'
import { ensureNative } from '../setup/native.ts'
import { ensureRunsc } from '../setup/runsc.ts'

interface Finding {
  readonly name: string
  readonly ok: boolean
  readonly found: string
  readonly mend?: string
  readonly required: boolean
}

/** Returns 0 when a daemon can run here. */
export async function doctorCommand({ json }: { json?: boolean }): Promise<number> {
  const findings = await examine()
  const fit = findings.every(({ ok, required }) => ok || !required)
  if (json) {
    printJson({ ok: fit, findings })
    return fit ? 0 : 1
  }
  const rows = findings.map(({ name, ok, found, required }) => [
    ok ? 'ok' : required ? 'MISSING' : 'worse',
    name,
    found,
  ])
  printLine(formatTable(['', 'WHAT', 'FOUND'], rows))
  for (const { ok, name, mend } of findings) if (!ok && mend) printLine(`\n${name}: ${mend}`)
  printLine(fit ? '\nthis machine can run sandboxes' : '\nthis machine can not run sandboxes yet')
  return fit ? 0 : 1
}

async function examine(): Promise<Finding[]> {
  const findings: Finding[] = [{ name: 'Node.js', ok: true, found: version, required: true }]
  const programs: { runsc?: string; helper?: string; agent?: string } = {}
  try {
    Object.assign(programs, await ensureNative(() => undefined))
    programs.runsc = await ensureRunsc(() => undefined)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    findings.push({
      name: 'programs',
      ok: false,
      found: error.message,
      mend: error.hint,
      required: true,
    })
  }
  const { probeMachine } = await import('@sandlot/server')
  return [...findings, ...(await probeMachine({ gvisor: programs }))]
}
