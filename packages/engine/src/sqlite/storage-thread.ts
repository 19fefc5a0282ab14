/** Entry of the storage thread: opens the database, then carries out one transaction for each message. */
import { parentPort, workerData } from 'node:worker_threads'
import { EngineError } from '../error.ts'
import { unpackBytes } from './packed-bytes.ts'
import { openStorage, type Storage } from './storage.ts'
import {
  type FromStorage,
  type Outcome,
  type StorageOptions,
  type ToStorage,
  toPlainError,
} from './thread-message.ts'

const port = parentPort
if (port === null) throw new Error('storage-thread.ts runs as a worker thread only')

const storage = open(workerData as StorageOptions)
/** What came since a copy of the database was asked for, until it is begun. */
let held: ToStorage[] | undefined
if (storage) port.on('message', (message: ToStorage) => receive(storage, message))

function receive(storage: Storage, message: ToStorage): void {
  if (held) held.push(message)
  else carryOut(storage, message)
}

function carryOut(storage: Storage, message: ToStorage): void {
  if (message.type === 'batch') {
    const outcomes = storage.transactions.run(message.operations, unpackBytes(message.bytes))
    send({ type: 'done', outcomes }, buffersOf(outcomes))
  } else if (message.type === 'backup') {
    const messages: ToStorage[] = []
    held = messages
    // On a later turn: Node.js calls this amid a backup, where the database must not be closed.
    const begun = () => void setImmediate(release, storage, messages)
    void storage.backUp(message.path, begun).then((outcome) => send({ type: 'backedUp', outcome }))
  } else {
    storage.close()
    port?.close()
  }
}

/** Once for each backup, however often it is called. */
function release(storage: Storage, messages: readonly ToStorage[]): void {
  if (held !== messages) return
  held = undefined
  for (const message of messages) receive(storage, message)
}

function open(options: StorageOptions): Storage | undefined {
  try {
    const opened = openStorage(options)
    send({ type: 'opened' })
    return opened
  } catch (error) {
    if (!(error instanceof EngineError)) throw error
    send({ type: 'refused', error: toPlainError(error) })
    return undefined
  }
}

function send(message: FromStorage, transfer: ArrayBuffer[] = []): void {
  port?.postMessage(message, transfer)
}

function buffersOf(outcomes: readonly Outcome[]): ArrayBuffer[] {
  return outcomes.flatMap((outcome) =>
    outcome.ok && outcome.bytes ? [outcome.bytes.data.buffer] : [],
  )
}
