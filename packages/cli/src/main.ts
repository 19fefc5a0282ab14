/** The `sandlot` command. */
import { argv, exit, stderr, stdout } from 'node:process'
import { makeProgram } from './program.ts'

// Whoever reads the results may stop when it has enough, as `head` does.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') exit(0)
  throw error
})
// Nobody to tell is no reason to stop: a daemon whose owner is gone has sandboxes to end.
stderr.on('error', () => undefined)

try {
  await makeProgram().parseAsync(argv)
} catch (thrown) {
  const { reportFailure } = await import('./output/funnel.ts')
  process.exitCode = reportFailure(thrown)
}
// Nothing that a command left open may hold it.
exit()
