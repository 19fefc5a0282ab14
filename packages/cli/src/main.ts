/** The `sandlot` command. */
import { argv, exit } from 'node:process'
import { reportFailure } from './output/funnel.ts'
import { makeProgram } from './program.ts'

try {
  await makeProgram().parseAsync(argv)
} catch (thrown) {
  exit(reportFailure(thrown))
}
