/** What stands below the message about a command line that can't be parsed. */
import type { Command } from 'commander'

/** Points every verb's mistakes to its own help, and an unknown verb to where one of this name is. */
export function explainErrors(program: Command): void {
  const outputError = (text: string, write: (text: string) => void): void => {
    const unknown = /unknown command '([^']+)'/.exec(text)?.[1]
    const elsewhere = unknown === undefined ? [] : pathsOf(program, unknown)
    // What is only spelled like it is not what is meant where one is called just so.
    write(elsewhere.length > 0 ? text.replace(/\(Did you mean .*\)\n/, '') : text)
    if (elsewhere.length > 0) write(`(Did you mean ${elsewhere.join(' or ')}?)\n`)
  }
  for (const command of all(program)) {
    const path = pathOf(command)
    const own = command.parent === null ? '' : `, \`${path} --help\` for this one`
    command.showHelpAfterError(`(run \`sandlot help\` for the verbs${own})`)
    command.configureOutput({ outputError })
  }
}

function pathsOf(program: Command, name: string): string[] {
  return all(program).flatMap((command) =>
    command !== program && command.name() === name ? [pathOf(command)] : [],
  )
}

function all(command: Command): Command[] {
  return [command, ...command.commands.flatMap(all)]
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}
