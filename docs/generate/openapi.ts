import { needsKey, ROUTES, type Route, type RouteName } from '@sandlot/protocol'
import type { z } from 'zod'
import type { Document } from './document.ts'
import { VERSION } from './inside.ts'
import { COMPONENT, type JsonSchema, schemaOf, shapes } from './schema.ts'

/** The API as an OpenAPI document, for clients in other languages. */
export const openapi: Document = {
  path: 'docs/openapi.json',
  text: () => `${JSON.stringify(openApiDocument(), null, 2)}\n`,
}

/** OpenAPI 3.1. The WebSocket stands in it as the GET that it begins with; docs/wire.md has its frames. */
export function openApiDocument() {
  const paths: Record<string, Record<string, object>> = {}
  for (const [name, route] of Object.entries(ROUTES) as [RouteName, Route][]) {
    const path = route.path.replace(/:([a-z]+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(name, route) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sandlot',
      version: VERSION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: 'http://127.0.0.1:8760' }],
    paths,
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
      schemas: Object.fromEntries(shapes().map(({ name, schema }) => [name, schema])),
      responses: {
        Failure: {
          description: 'A failure: docs/errors.md has the codes',
          content: json({ $ref: `${COMPONENT}ErrorEnvelope` }),
        },
      },
    },
  }
}

function operation(name: RouteName, route: Route): object {
  const parameters = [...pathParameters(route), ...queryParameters(route), ...keyHeader(route)]
  return {
    operationId: name,
    summary: route.summary,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(route.body === undefined
      ? {}
      : { requestBody: { required: true, content: bodyContent(route.body) } }),
    responses: {
      [route.status]: { description: route.summary, ...answerContent(name, route) },
      default: { $ref: '#/components/responses/Failure' },
    },
    security: needsKey(name) ? [{ key: [] }] : [],
  }
}

function pathParameters({ path }: Route): object[] {
  return [...path.matchAll(/:([a-z]+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
}

function queryParameters({ query }: Route): object[] {
  if (!query) return []
  const { properties = {}, required = [] } = schemaOf(query, 'input')
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }))
}

function keyHeader({ method }: Route): object[] {
  if (method === 'GET' || method === 'HEAD') return []
  const schema = { type: 'string', minLength: 1, maxLength: 200 }
  return [{ name: 'idempotency-key', in: 'header', required: false, schema }]
}

function bodyContent(body: z.ZodType | 'bytes'): object {
  return body === 'bytes' ? octets() : json(schemaOf(body, 'input'))
}

function answerContent(name: RouteName, { answer }: Route): object {
  if (answer === 'none') return {}
  if (answer === 'bytes') return { content: octets() }
  if (answer === 'text') return { content: { 'text/plain': { schema: { type: 'string' } } } }
  if (answer === 'lines') return { content: { 'application/x-ndjson': { schema: lineOf(name) } } }
  return { content: json(schemaOf(answer, 'output')) }
}

/** The shape of one line of a route that answers in lines. */
export function lineOf(name: RouteName): JsonSchema {
  const shapes: Partial<Record<RouteName, string>> = {
    buildImage: 'ImageBuildLine',
    prepareTemplate: 'TemplateLine',
    listFiles: 'FileEntry',
  }
  const shape = shapes[name]
  if (shape === undefined) throw new Error(`nothing says what a line of ${name} is`)
  return { $ref: COMPONENT + shape }
}

function json(schema: JsonSchema): object {
  return { 'application/json': { schema } }
}

/** Raw bytes have a media type and no schema in OpenAPI 3.1. */
function octets(): object {
  return { 'application/octet-stream': {} }
}
