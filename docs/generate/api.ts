import { LIMITS, ROUTES, type Route, type RouteName } from '@sandlot/protocol'
import type { z } from 'zod'
import { type Document, NOTICE } from './document.ts'
import { scopeOf } from './inside.ts'
import { code, table } from './markdown.ts'
import { lineOf } from './openapi.ts'
import { type Direction, type JsonSchema, schemaOf, shapes } from './schema.ts'
import { boundsText, linkedType } from './type-text.ts'

const INTRODUCTION = `# The HTTP API

JSON over HTTP, one WebSocket beside it for what streams ([wire.md](wire.md)). [openapi.json](openapi.json) says the same for machines.

- Paths below \`/v1\` want \`authorization: Bearer KEY\`. A key has a scope: \`read\` looks, \`run\` also changes, \`admin\` also removes what others may use. The daemon's own key stands in the file \`key\` of its data directory.
- Every mutation takes an \`idempotency-key\` header of 1 to 200 characters. The same key with the same request is answered with the first answer for a quarter of an hour, with another request \`idempotency_conflict\`.
- A JSON body has at most ${LIMITS.bodyBytes / 2 ** 20} MiB; larger contents travel as blobs or files, which stream.
- Durations are text with a unit (\`'30s'\`) or milliseconds, sizes text (\`'512MiB'\`) or bytes. Unknown fields and parameters are refused.
- A list answers \`{ items, next }\`; \`next\` goes into \`after\` of the next request and is null on the last page.
- A failure has one shape, [\`ErrorEnvelope\`](#errorenvelope); [errors.md](errors.md) has the codes.`

/** The routes for a person. */
export const api: Document = {
  path: 'docs/api.md',
  text: () => {
    const routes = Object.entries(ROUTES) as [RouteName, Route][]
    return [
      NOTICE,
      INTRODUCTION,
      '## Routes',
      table(['', 'route', 'scope', 'what it does'], routes.map(lineOfRoute)),
      ...routes.map(([name, route]) => sectionOf(name, route)),
      '## Shapes',
      ...shapes().map(
        ({ name, schema, direction }) => `### ${name}\n\n${fieldsOf(schema, direction)}`,
      ),
      '',
    ].join('\n\n')
  },
}

function lineOfRoute([name, { method, path, summary }]: [RouteName, Route]): string[] {
  return [method, `[${code(path)}](#${name.toLowerCase()})`, scopeText(name), summary]
}

function scopeText(name: RouteName): string {
  return ROUTES[name].path.startsWith('/v1/') ? scopeOf(name) : 'no key'
}

function sectionOf(name: RouteName, route: Route): string {
  const { method, path, summary, query, body } = route
  const parts = [`### ${name}`, `${code(`${method} ${path}`)} · ${summary}.`]
  if (query) parts.push(`Query:\n\n${fieldsOf(schemaOf(query, 'input'), 'input')}`)
  if (body !== undefined) parts.push(`Body: ${shapeText(body, 'input')}`)
  parts.push(`Answer: ${answerText(name, route)}`)
  return parts.join('\n\n')
}

function answerText(name: RouteName, { status, answer }: Route): string {
  if (answer === 'none') return `${status}, without a body.`
  if (answer === 'text') return `${status}, text.`
  if (answer === 'lines') {
    return `${status}, one JSON value a line, each a ${linkedType(lineOf(name))}.`
  }
  return `${status}, ${shapeText(answer, 'output')}`
}

function shapeText(shape: z.ZodType | 'bytes', direction: Direction): string {
  if (shape === 'bytes') return 'bytes, as a stream.'
  const schema = schemaOf(shape, direction)
  if (schema.properties) return `an object.\n\n${fieldsOf(schema, direction)}`
  return `${linkedType(schema)}.`
}

function fieldsOf(schema: JsonSchema, direction: Direction): string {
  const alternatives = schema.anyOf ?? schema.oneOf
  if (alternatives) {
    return `One of:\n\n${alternatives.map((each) => `- ${linkedType(each)}`).join('\n')}`
  }
  const { properties = {}, required = [] } = schema
  const rows = Object.entries(properties).map(([name, field]) => [
    code(name),
    linkedType(field),
    required.includes(name) ? 'yes' : '',
    boundsText(field),
  ])
  return table(['field', 'type', direction === 'input' ? 'required' : 'always', 'bounds'], rows)
}
