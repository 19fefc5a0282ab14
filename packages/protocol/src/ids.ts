import { z } from 'zod'

/** What an id names: the prefix stands outside the 20 characters, which are a DNS label by themselves. */
export const ID_PREFIXES = {
  sandbox: 'sb',
  image: 'im',
  snapshot: 'sn',
  template: 'tp',
  run: 'rn',
  episode: 'ep',
  lease: 'ls',
  exec: 'ex',
  worker: 'wk',
  key: 'ky',
} as const
export type IdKind = keyof typeof ID_PREFIXES

export const ID_ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789'
export const ID_LENGTH = 20

/** A zod schema for ids of one kind. */
export function idOf(kind: IdKind) {
  const prefix = ID_PREFIXES[kind]
  return z
    .string()
    .regex(
      new RegExp(`^${prefix}_[a-z0-9]{${ID_LENGTH}}$`),
      `not the id of a ${kind} (${prefix}_…)`,
    )
}

/** Builds an id from random bytes (at least 20), so that this file needs no source of randomness. */
export function formatId(kind: IdKind, random: Uint8Array): string {
  if (random.length < ID_LENGTH) throw new RangeError(`an id needs ${ID_LENGTH} random bytes`)
  let label = ''
  for (let i = 0; i < ID_LENGTH; i++)
    label += ID_ALPHABET[(random[i] as number) % ID_ALPHABET.length]
  return `${ID_PREFIXES[kind]}_${label}`
}

/** A fresh id, from the runtime's own secure randomness. */
export function newId(kind: IdKind): string {
  return formatId(kind, crypto.getRandomValues(new Uint8Array(ID_LENGTH)))
}

/** The kind of an id by its prefix, or undefined. */
export function idKind(id: string): IdKind | undefined {
  const prefix = id.slice(0, id.indexOf('_'))
  return (Object.keys(ID_PREFIXES) as IdKind[]).find((kind) => ID_PREFIXES[kind] === prefix)
}
