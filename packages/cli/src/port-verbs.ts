import type { Command } from 'commander'

/** `sandlot sandbox ports` and `sandlot sandbox url`. */
export function addPortVerbs(sandbox: Command): void {
  sandbox
    .command('ports')
    .description('list what programs in a sandbox listen on')
    .argument('<id>')
    .option('--json', 'print JSON')
    .action(async (id, options) => (await import('./commands/ports.ts')).portsCommand(id, options))
  sandbox
    .command('url')
    .description('print a URL that leads to a port without a key')
    .argument('<id>')
    .argument('<port>')
    .option('--expires <duration>', 'how long it is good, at most 7 days (default: 1h)')
    .option('--path <path>', 'path and query that it leads to (default: /)')
    .option('--named', 'with a host name of the port’s own')
    .action(async (id, port, options) =>
      (await import('./commands/ports.ts')).urlCommand(id, port, options),
    )
}

/** `sandlot port-forward`. */
export function addPortForwardVerb(program: Command): void {
  program
    .command('port-forward')
    .description('reach ports of a sandbox at 127.0.0.1 of this machine, until Ctrl-C')
    .argument('<id>')
    .argument('<port...>', 'LOCAL:PORT or PORT, which takes the same here; 0:PORT takes a free one')
    .action(async (id, ports) => {
      const { portForwardCommand } = await import('./commands/port-forward.ts')
      process.exitCode = await portForwardCommand(id, ports)
    })
}
