import { type Document, NOTICE } from './document.ts'
import { makeProgram } from './inside.ts'
import { fenced } from './markdown.ts'

const HELP_COLUMNS = 100

const INTRODUCTION = `# The command line

In a checkout the command is \`./sandlot\`. Results go to standard output, everything else to standard error. Exit codes: 0 done, 1
failed (the hint says what mends it), 2 a mistake in what was asked, 70 a fault of Sandlot itself, 130 interrupted; \`sandbox exec\` ends
with the exit code of its command (128 + the signal that ended it). The variables it reads are in [configuration.md](configuration.md).`

export const cli: Document = {
  path: 'docs/cli.md',
  text: () => [NOTICE, INTRODUCTION, ...sectionsOf(makeProgram(), []), ''].join('\n\n'),
}

type Command = ReturnType<typeof makeProgram>

function sectionsOf(command: Command, above: readonly string[]): string[] {
  const path = [...above, command.name()]
  command.configureHelp({ helpWidth: HELP_COLUMNS })
  const section = `## ${path.join(' ')}\n\n${fenced('text', command.helpInformation())}`
  return [section, ...command.commands.flatMap((each) => sectionsOf(each, path))]
}
