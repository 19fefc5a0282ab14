import { z } from 'zod'
import { FAULTS, type Fault } from './outcomes.ts'

interface CatalogueEntry {
  readonly status: number
  readonly fault: Fault
  /** Whether the same request may succeed later. */
  readonly retry: boolean
  /** What to do next, when the place that raises it knows nothing better. */
  readonly hint: string
}

/** Every error that crosses the wire. One table: HTTP status, whose fault, whether a retry helps, what to do next. */
export const ERROR_CATALOGUE = {
  invalid_request: {
    status: 400,
    fault: 'caller',
    retry: false,
    hint: 'Correct the field that the message names.',
  },
  unauthorized: {
    status: 401,
    fault: 'caller',
    retry: false,
    hint: 'Set SANDLOT_API_KEY, or run on the machine of the daemon, where its key is found by itself.',
  },
  token_expired: {
    status: 401,
    fault: 'caller',
    retry: false,
    hint: 'Ask for a new one where this one came from; `expires` says how long it lasts.',
  },
  token_invalid: {
    status: 401,
    fault: 'caller',
    retry: false,
    hint: 'Copy it whole, with nothing changed. It is good for one purpose, at the daemon that gave it.',
  },
  forbidden: {
    status: 403,
    fault: 'caller',
    retry: false,
    hint: 'Use a key whose scope allows this.',
  },
  key_unknown: {
    status: 404,
    fault: 'caller',
    retry: false,
    hint: 'List the keys with `sandlot keys list`.',
  },
  not_found: {
    status: 404,
    fault: 'caller',
    retry: false,
    hint: 'List what there is with `sandlot ps` or `sandlot runs list`.',
  },
  route_unknown: {
    status: 404,
    fault: 'caller',
    retry: false,
    hint: 'See the list of routes in docs/api.md.',
  },
  sandbox_unknown: {
    status: 404,
    fault: 'caller',
    retry: false,
    hint: 'List the sandboxes that live with `sandlot ps`.',
  },
  sandbox_gone: {
    status: 410,
    fault: 'workload',
    retry: false,
    hint: 'A sandbox is never used again after it ended: create a new one. `sandlot sandbox logs` tells how this one ended.',
  },
  sandbox_paused: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: 'Resume it first: `sandbox.resume()` or `sandlot sandbox resume`.',
  },
  sandbox_busy: {
    status: 503,
    fault: 'capacity',
    retry: true,
    hint: 'Its memory is being saved: try again in a moment.',
  },
  image_unknown: {
    status: 404,
    fault: 'caller',
    retry: false,
    hint: 'Build it first: `await client.images.build(Image.debian(…))`, or name an image that `sandlot images list` shows.',
  },
  image_source_invalid: {
    status: 422,
    fault: 'caller',
    retry: false,
    hint: 'Correct what the message names, or pack the archive again.',
  },
  image_build_failed: {
    status: 422,
    fault: 'caller',
    retry: false,
    hint: 'Read the last lines of the build log in the message.',
  },
  registry_image_unknown: {
    status: 422,
    fault: 'caller',
    retry: false,
    hint: 'The registry has no such image: check its name and its tag.',
  },
  registry_denied: {
    status: 422,
    fault: 'caller',
    retry: false,
    hint: 'Log in on the daemon’s machine (`skopeo login REGISTRY`), or check the name: a private image and a missing one look the same.',
  },
  registry_unreachable: {
    status: 503,
    fault: 'platform',
    retry: true,
    hint: 'Check the daemon’s network and its proxy settings, and that the registry is up.',
  },
  image_in_use: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: 'Stop the sandboxes that were made from it, then remove it.',
  },
  snapshot_unknown: {
    status: 404,
    fault: 'caller',
    retry: false,
    hint: 'Name one that `sandlot snapshots list` shows; what was deleted is not kept.',
  },
  snapshot_in_use: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: 'Stop what was started from it, or delete it with `force`: what runs goes on, and nothing more starts from it.',
  },
  template_unknown: {
    status: 404,
    fault: 'caller',
    retry: false,
    hint: 'Prepare it again: `await client.prepare(…)`; `sandlot templates list` shows those that are there.',
  },
  exec_unknown: {
    status: 404,
    fault: 'caller',
    retry: false,
    hint: 'List the commands of a sandbox with `sandlot sandbox logs ID`.',
  },
  exec_failed: {
    status: 422,
    fault: 'workload',
    retry: false,
    hint: 'Check its path, the working directory and the user. An argument array is run without a shell: for shell syntax run `sh -c …`.',
  },
  port_refused: {
    status: 502,
    fault: 'workload',
    retry: true,
    hint: 'Start a server on this port in the sandbox, on 127.0.0.1 or 0.0.0.0: `sandbox.ports.list()` tells what listens.',
  },
  port_failed: {
    status: 502,
    fault: 'workload',
    retry: false,
    hint: 'The program that listens there broke off, or speaks another protocol than HTTP. `sandbox.ports.connect(PORT)` carries any.',
  },
  port_limit: {
    status: 503,
    fault: 'capacity',
    retry: true,
    hint: 'Close connections to ports of this sandbox that nobody needs any more.',
  },
  file_not_found: {
    status: 404,
    fault: 'workload',
    retry: false,
    hint: 'List the directory to see what is there.',
  },
  file_is_directory: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: 'Use files.list for a directory, or files.download for its whole content.',
  },
  file_not_directory: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: 'A part of the path is not a directory.',
  },
  file_not_regular: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: 'Only regular files can be read and written.',
  },
  file_exists: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: 'Remove it first, or write without `exclusive`.',
  },
  file_failed: {
    status: 422,
    fault: 'workload',
    retry: false,
    hint: 'The file system of the sandbox refused it: the message names the error.',
  },
  local_file_failed: {
    status: 400,
    fault: 'caller',
    retry: false,
    hint: 'The file system of the machine that runs this code refused it, not the sandbox: the message names path and reason.',
  },
  directory_not_empty: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: 'Remove with `recursive: true`.',
  },
  permission_denied: {
    status: 403,
    fault: 'workload',
    retry: false,
    hint: 'The sandbox refuses it: check owner and mode.',
  },
  no_space: {
    status: 507,
    fault: 'workload',
    retry: false,
    hint: "The sandbox's disk is full: ask for more with resources.disk.",
  },
  sandbox_limit: {
    status: 429,
    fault: 'workload',
    retry: false,
    hint: 'A limit of the sandbox was met: ask for more with resources.',
  },
  run_unknown: {
    status: 404,
    fault: 'caller',
    retry: false,
    hint: 'List the runs with `sandlot runs list`.',
  },
  run_exists: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: "Take another name, or say ifExists: 'attach' to read its results or 'replace' to run it again.",
  },
  run_differs: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: "A run of this name has another specification: take another name, or say ifExists: 'replace'.",
  },
  run_closed: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: 'The run takes no more tasks: start a new one.',
  },
  task_conflict: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: 'Two different tasks have the same key: give each its own with `key: (task, i) => …`.',
  },
  lease_lost: {
    status: 409,
    fault: 'capacity',
    retry: false,
    hint: 'The attempt went to another worker, or is over: drop this result.',
  },
  blob_unknown: { status: 404, fault: 'caller', retry: false, hint: 'Upload the content first.' },
  digest_mismatch: {
    status: 422,
    fault: 'caller',
    retry: false,
    hint: 'The content is not what its digest says: upload it again.',
  },
  protocol_differs: {
    status: 426,
    fault: 'caller',
    retry: false,
    hint: 'Start the daemon of the client’s version, or install the client of the daemon’s: docs/guides/operating.md, “Upgrading”.',
  },
  unsupported: {
    status: 501,
    fault: 'caller',
    retry: false,
    hint: 'This daemon or machine cannot do it: see `sandlot doctor`.',
  },
  idempotency_conflict: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: 'This idempotency key was used for another request: take a fresh one.',
  },
  too_large: {
    status: 413,
    fault: 'caller',
    retry: false,
    hint: 'Send less in one request; large contents travel as files or blobs.',
  },
  capacity: {
    status: 503,
    fault: 'capacity',
    retry: true,
    hint: 'The machine holds no more sandboxes now: wait, stop some, or ask for less.',
  },
  rate_limited: {
    status: 429,
    fault: 'capacity',
    retry: true,
    hint: 'Wait a moment and try again.',
  },
  draining: {
    status: 503,
    fault: 'capacity',
    retry: true,
    hint: 'The daemon is stopping: try again when it is back.',
  },
  create_failed: {
    status: 503,
    fault: 'platform',
    retry: true,
    hint: 'Run `sandlot doctor`, and read the daemon’s log.',
  },
  snapshot_incompatible: {
    status: 409,
    fault: 'platform',
    retry: false,
    hint: "The message names what differs: take the snapshot again on this machine, or start from its files with ifIncompatible: 'cold'.",
  },
  gpu_driver_unsupported: {
    status: 501,
    fault: 'platform',
    retry: false,
    hint: 'Install a GPU driver of a version that `runsc nvproxy list-supported-drivers` names, or a newer runsc.',
  },
  snapshot_failed: {
    status: 503,
    fault: 'platform',
    retry: true,
    hint: 'The sandbox lives on: try again, and read the daemon’s log.',
  },
  on_restore_failed: {
    status: 422,
    fault: 'caller',
    retry: false,
    hint: 'The message has the last that it said. It runs in each copy with the network and the environment of that copy: correct it, and save the memory again.',
  },
  sandbox_lost: {
    status: 503,
    fault: 'platform',
    retry: true,
    hint: 'The sandbox died by no doing of its own: create a new one.',
  },
  secret_unknown: {
    status: 404,
    fault: 'caller',
    retry: false,
    hint: 'Set it first: `sandlot secrets set NAME`, or `await client.secrets.set(name, value)`.',
  },
  network_unchanged: {
    status: 409,
    fault: 'caller',
    retry: false,
    hint: 'The policy that was in force still is. The message says what stands in the way.',
  },
  queue_unknown: {
    status: 404,
    fault: 'caller',
    retry: false,
    hint: 'The first `put` of `client.queue(name)` makes it; `sandlot queues list` shows which are there.',
  },
  function_invalid: {
    status: 422,
    fault: 'caller',
    retry: false,
    hint: 'Correct the module that the message names. It is bundled with all that it imports, and loaded by Node.js in an image of glibc 2.28 or newer.',
  },
  function_exited: {
    status: 422,
    fault: 'workload',
    retry: false,
    hint: 'The message has the last that it printed. For more memory say `resources: { memory: … }`.',
  },
  function_timeout: {
    status: 422,
    fault: 'workload',
    retry: false,
    hint: 'Allow it more time with `timeout`, or let each input do less.',
  },
  function_lost: {
    status: 503,
    fault: 'platform',
    retry: true,
    hint: 'The input may have had its effect. Where it may have it twice, say `retry: { infra: 2 }` and it is begun again elsewhere.',
  },
  disk_full: {
    status: 507,
    fault: 'platform',
    retry: true,
    hint: 'Free space under the data directory of the daemon: nothing was lost.',
  },
  timeout: {
    status: 504,
    fault: 'platform',
    retry: true,
    hint: 'It took longer than allowed: try again, or allow more time.',
  },
  unreachable: {
    status: 503,
    fault: 'platform',
    retry: true,
    hint: 'No daemon answers: start one with `sandlot serve`, or set SANDLOT_URL.',
  },
  connection_lost: {
    status: 503,
    fault: 'platform',
    retry: true,
    hint: 'The connection to the daemon broke: what was asked may or may not have happened.',
  },
  cancelled: { status: 499, fault: 'caller', retry: false, hint: 'It was cancelled.' },
  internal: {
    status: 500,
    fault: 'platform',
    retry: true,
    hint: 'A fault of Sandlot itself: please report it with the daemon’s log.',
  },
} as const satisfies Record<string, CatalogueEntry>

export type ErrorCode = keyof typeof ERROR_CATALOGUE
export const ERROR_CODES = Object.keys(ERROR_CATALOGUE) as ErrorCode[]

/** The one shape of an error answer: `{ error: { code, message, fault, retry, hint, details? } }`. */
export const errorEnvelope = z.object({
  error: z.object({
    code: z.enum(ERROR_CODES as [ErrorCode, ...ErrorCode[]]),
    message: z.string(),
    fault: z.enum(FAULTS),
    retry: z.boolean(),
    hint: z.string(),
    details: z.record(z.string(), z.unknown()).optional(),
  }),
})
export type ErrorEnvelope = z.infer<typeof errorEnvelope>
