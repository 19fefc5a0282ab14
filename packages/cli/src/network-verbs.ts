/** The verbs about what a sandbox may reach. */
import type { Command } from 'commander'
import { collect, wholeNumber } from './option-values.ts'

export function addNetworkVerbs(sandbox: Command): void {
  const network = sandbox
    .command('network')
    .description('print what a sandbox asked of its network: each connection, and each refusal')
    .enablePositionalOptions()
  network
    .command('log', { isDefault: true })
    .description('what it asked for, oldest first, also after it has ended')
    .argument('<id>')
    .option('-f, --follow', 'go on with what comes later, until it ends')
    .option('--from <n>', 'only lines of this number and later ones', wholeNumber)
    .option('--json', 'print a JSON object a line')
    .action(async (id, options) => {
      const { networkLogCommand } = await import('./commands/network.ts')
      await networkLogCommand(id, options)
    })
  network
    .command('show')
    .description('what decides at this moment, as JSON')
    .argument('<id>')
    .action(async (id) => (await import('./commands/network.ts')).networkShowCommand(id))
  const set = network
    .command('set')
    .description('set what a running sandbox may reach, and print what is in force then')
    .argument('<id>')
    .option('--none', 'nothing')
  addPolicyOptions(set).action(async (id, options) => {
    const { networkSetCommand } = await import('./commands/network.ts')
    await networkSetCommand(id, options)
  })
}

/** What says a policy on the command line. */
export function addPolicyOptions(verb: Command): Command {
  return verb
    .option(
      '--allow <host>',
      'a host that it may reach: NAME, *.NAME, an address, or a network as 10.1.2.0/24; with :PORT, :FIRST-LAST or :* (again for more)',
      collect,
    )
    .option('--packages', 'let it reach the package mirrors of the machine')
    .option('--connections <n>', 'connections at once (default: 128)', wholeNumber)
    .option('--connections-per-minute <n>', 'connections in a minute (default: 6000)', wholeNumber)
    .option('--bytes <size>', 'sent and received in all (default: no end)')
    .option('--bytes-per-second <size>', 'sent and received in a second (default: no bound)')
}
