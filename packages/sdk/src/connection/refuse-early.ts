import {
  completeResources,
  invalidRequest,
  type ResourcesInput,
  resources,
} from '@sandlot/protocol'

interface Schema {
  safeParse(value: unknown): { readonly error?: Parameters<typeof invalidRequest>[1] }
}

/**
 * What the daemon would refuse is refused before something long is begun for it, such as the build of an image. `where` is the option.
 * @throws SandlotError `invalid_request`
 */
export function refuseEarly(schema: Schema, request: unknown, where = ''): void {
  const { error } = schema.safeParse(request)
  if (error) throw invalidRequest(where, error)
}

/** Of a start that has no others to complete them. */
export function refuseResources(given: ResourcesInput | undefined): void {
  completeResources(given && resources.parse(given))
}
