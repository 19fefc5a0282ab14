/** The `sandlot` command. */
import { argv, exit, stdout } from 'node:process'
import { makeProgram } from './program.ts'

// Whoever reads the results may stop when it has enough, as `head` does.
stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') exit(0)
  throw error
})

try {
  await makeProgram().parseAsync(argv)
} catch (thrown) {
  const { reportFailure } = await import('./output/funnel.ts')
  process.exitCode = reportFailure(thrown)
}
// Nothing that a command left open may hold it.
exit()
