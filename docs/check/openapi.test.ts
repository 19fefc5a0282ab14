import { ROUTES } from '@sandlot/protocol'
import { expect, test } from 'vitest'
import { openApiDocument } from '../generate/openapi.ts'

const document = openApiDocument()
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.values(methods).map((operation) => ({ path, ...(operation as Operation) })),
)

interface Operation {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string; readonly in: string }[]
}

test('the document has each route once', () => {
  expect(operations.map(({ operationId }) => operationId).sort()).toEqual(
    Object.keys(ROUTES).sort(),
  )
})

test('each parameter of a path is declared', () => {
  for (const { path, parameters = [] } of operations) {
    const wanted = [...path.matchAll(/\{([a-z]+)\}/g)].map(([, name]) => name)
    const declared = parameters.filter((each) => each.in === 'path').map(({ name }) => name)
    expect(declared, path).toEqual(wanted)
  }
})

test('each reference leads to a component', () => {
  const text = JSON.stringify(document)
  for (const [, reference = ''] of text.matchAll(/"\$ref":"([^"]+)"/g)) {
    let place: unknown = document
    for (const step of reference.replace('#/', '').split('/')) {
      place = (place as Record<string, unknown>)[step]
    }
    expect(place, reference).toBeTypeOf('object')
  }
})
