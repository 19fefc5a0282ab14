import { z } from 'zod'
import { LIMITS } from './limits.ts'
import { networkHost } from './network.ts'
import { parseNetworkHost } from './network-host.ts'

/** Of a secret in its project. */
export const secretName = z
  .string()
  .regex(
    /^[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}$/,
    'the name of a secret has letters, digits, dots, - and _, at most 100, and begins with a letter or digit',
  )

/** `PUT /v1/secrets/:name`. What an HTTP header can hold. */
export const secretSet = z
  .object({
    value: z
      .string()
      .min(1, 'is empty')
      .max(LIMITS.secretLength, `is longer than ${LIMITS.secretLength} characters`)
      .regex(/^[ -~]*$/, 'holds a line end or another character that no header can hold')
      .regex(/^(?:\S(?:.*\S)?)?$/s, 'begins or ends with a space'),
  })
  .strict()

/** A secret is never told again; this is all that is. */
export const secretView = z.object({
  name: secretName,
  createdAtMs: z.number(),
  /** When its value was set last. */
  setAtMs: z.number(),
})
export type SecretView = z.infer<typeof secretView>

/** Where of a request a placeholder is found: values of headers (also inside `Basic`), or the query of its address. */
export const SECRET_PLACES = ['headers', 'query'] as const
export type SecretPlace = (typeof SECRET_PLACES)[number]

/** An entry of `hosts`: no network, for what is behind an address is nobody that could be named. */
const secretHost = networkHost.superRefine((text, context) => {
  const found = parseNetworkHost(text)
  if ('problem' in found || found.prefix === undefined) return
  context.addIssue({ code: 'custom', message: `${JSON.stringify(text)} is a network: name hosts` })
})

/**
 * A secret that is put into requests on their way out. Commands see a placeholder in the variable; in a request to one of `hosts` the
 * daemon puts the secret in its place. The policy has to allow the hosts besides.
 */
export const secretUse = z
  .object({
    /** Name of the secret: `client.secrets.set(name, value)`, `sandlot secrets set NAME`. */
    from: secretName,
    hosts: z.array(secretHost).min(1, 'names no host').max(LIMITS.secretHosts),
    /**
     * `terminate`: the daemon takes part in the TLS of connections to `hosts`, by a certificate of its own that the sandbox trusts, and
     * opens another one to the host, whose certificate it verifies. Without it only requests for `http://` addresses get the secret.
     */
    tls: z.enum(['terminate']).optional(),
    /** Default: `['headers']`. */
    in: z.array(z.enum(SECRET_PLACES)).min(1).max(SECRET_PLACES.length).optional(),
  })
  .strict()
  .superRefine(({ hosts, tls }, context) => {
    if (tls) return
    for (const [at, text] of hosts.entries()) {
      const found = parseNetworkHost(text)
      if ('problem' in found || (found.ports && found.ports.first !== 443)) continue
      context.addIssue({
        code: 'custom',
        path: ['hosts', at],
        message: `${JSON.stringify(text)} is reached by TLS, into which nothing can be put: say tls: 'terminate', or name a port of plain HTTP as in ${JSON.stringify(`${found.host}:80`)}`,
      })
    }
  })
export type SecretUse = z.output<typeof secretUse>

/** Variables and their secrets. */
export const secretUses = z
  .record(
    z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'no name of a variable such as API_KEY'),
    secretUse,
  )
  .refine(
    (uses) => Object.keys(uses).length <= LIMITS.secretUses,
    `more than ${LIMITS.secretUses} secrets`,
  )
export type SecretUses = z.output<typeof secretUses>
export type SecretUsesInput = z.input<typeof secretUses>
