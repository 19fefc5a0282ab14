/** `sandlot setup`: brings everything and starts nothing, so that later calls need no network. */
import { loadHumanEval } from '../demo/dataset.ts'
import { note } from '../output/terminal.ts'
import { ensureMachine } from '../setup/machine.ts'
import { interruption } from './interruption.ts'

export async function setupCommand(): Promise<void> {
  using interrupted = interruption()
  const { signal } = interrupted
  const { runsc } = await ensureMachine(note, { signal })
  await loadHumanEval({ report: note, signal })
  note(`everything is there; runsc is ${runsc}`)
}
