import { ERROR_CATALOGUE, ERROR_CODES, FAULTS } from '@sandlot/protocol'
import { type Document, NOTICE } from './document.ts'
import { code, table } from './markdown.ts'

const INTRODUCTION = `# Errors

Every failure of the API is \`{ "error": { code, message, fault, retry, hint, details? } }\`, and the SDK throws it as \`SandlotError\`.
A program decides by \`fault\` and \`retry\`; \`message\` and \`hint\` are for a person. \`hint\` says what to do next; the place that
raises an error often knows a better one than the one below.

| fault | who can mend it |
|---|---|
| \`caller\` | whoever sent the request: it fails the same way until it is changed |
| \`capacity\` | time: the daemon or the machine has no room for it now |
| \`workload\` | the code in the sandbox, or its limits |
| \`platform\` | the operator, or Sandlot itself |

Inside of an episode an error is not a reward: see [outcomes](guides/rollouts.md#outcomes).`

export const errors: Document = {
  path: 'docs/errors.md',
  text: () => [NOTICE, INTRODUCTION, ...FAULTS.map((fault) => sectionOf(fault)), ''].join('\n\n'),
}

function sectionOf(fault: (typeof FAULTS)[number]): string {
  const rows = ERROR_CODES.filter((each) => ERROR_CATALOGUE[each].fault === fault).map((each) => {
    const { status, retry, hint } = ERROR_CATALOGUE[each]
    return [code(each), String(status), retry ? 'yes' : 'no', hint]
  })
  return `## ${code(fault)}\n\n${table(['code', 'status', 'retry', 'hint'], rows)}`
}
