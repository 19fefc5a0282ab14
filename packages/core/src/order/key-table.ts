/**
 * Which keys a run has seen, with what content: 12 bytes a key, so that a run of millions stays
 * small. Keys and digests are kept as hashes (64 and 32 bits). Two different keys that collide show
 * up as a conflict, not as a lost task, unless their contents collide as well: one chance in 10^17
 * for a run of a million tasks.
 */
export interface KeyTable {
  readonly size: number
  /** `new`, `known` (same content), or `conflict` (another content under this key). */
  check(key: string, digest: string): 'new' | 'known' | 'conflict'
  /** Adds a key that `check` called new; it takes the next position. */
  add(key: string, digest: string): void
  /** Position of the task with this key. */
  find(key: string): number | undefined
  /** All entries as base64, in a form that depends on nothing but what was added. */
  save(): string
}

const WORDS = 3
const FIRST_CAPACITY = 64

export function createKeyTable(saved = ''): KeyTable {
  let entries = new Uint32Array(FIRST_CAPACITY * WORDS)
  /** Open addressing into `entries`; 0 is empty, else the entry's number plus one. */
  let slots = new Int32Array(FIRST_CAPACITY * 2)
  let size = 0

  function slotOf(low: number, high: number): number {
    const mask = slots.length - 1
    let slot = (low ^ Math.imul(high, 0x9e3779b1)) & mask
    for (;;) {
      const entry = slots[slot] as number
      if (entry === 0) return slot
      const at = (entry - 1) * WORDS
      if (entries[at] === low && entries[at + 1] === high) return slot
      slot = (slot + 1) & mask
    }
  }

  function insert(low: number, high: number, content: number): void {
    if ((size + 1) * WORDS > entries.length) grow()
    const at = size * WORDS
    entries[at] = low
    entries[at + 1] = high
    entries[at + 2] = content
    slots[slotOf(low, high)] = ++size
  }

  function grow(): void {
    const wider = new Uint32Array(entries.length * 2)
    wider.set(entries)
    entries = wider
    slots = new Int32Array((entries.length / WORDS) * 2)
    for (let entry = 0; entry < size; entry++) {
      const at = entry * WORDS
      slots[slotOf(entries[at] as number, entries[at + 1] as number)] = entry + 1
    }
  }

  function entryOf(key: string): number {
    return (slots[slotOf(hash(key, LOW), hash(key, HIGH))] as number) - 1
  }

  const words = decode(saved)
  for (let at = 0; at < words.length; at += WORDS) {
    insert(words[at] ?? 0, words[at + 1] ?? 0, words[at + 2] ?? 0)
  }

  return {
    get size() {
      return size
    },
    check(key, digest) {
      const entry = entryOf(key)
      if (entry === -1) return 'new'
      return entries[entry * WORDS + 2] === hash(digest, LOW) ? 'known' : 'conflict'
    },
    add: (key, digest) => insert(hash(key, LOW), hash(key, HIGH), hash(digest, LOW)),
    find(key) {
      const entry = entryOf(key)
      return entry === -1 ? undefined : entry
    },
    save: () => encode(entries.subarray(0, size * WORDS)),
  }
}

const LOW = 0x2c1b3c6d
const HIGH = 0x297a2d39

/** Two rounds of multiply and rotate a character, and a last mix of murmur3. */
function hash(text: string, seed: number): number {
  let h = seed ^ text.length
  for (let i = 0; i < text.length; i++) {
    h = Math.imul(h ^ text.charCodeAt(i), 0xcc9e2d51)
    h = Math.imul((h << 15) | (h >>> 17), 0x1b873593)
  }
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

function encode(words: Uint32Array): string {
  const bytes = new Uint8Array(words.length * 4)
  const view = new DataView(bytes.buffer)
  for (let i = 0; i < words.length; i++) view.setUint32(i * 4, words[i] as number, true)
  let binary = ''
  for (let at = 0; at < bytes.length; at += 8_192) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 8_192))
  }
  return btoa(binary)
}

function decode(saved: string): Uint32Array {
  const binary = atob(saved)
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0))
  const view = new DataView(bytes.buffer)
  return Uint32Array.from({ length: bytes.length / 4 }, (_, i) => view.getUint32(i * 4, true))
}
