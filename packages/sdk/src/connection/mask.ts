/** Masking of what a client sends over its WebSocket. */

/**
 * Masks keep intermediaries from taking a message's content for HTTP. To go over every byte is most of what an upload costs, so
 * where no intermediary sees one, on this machine and under TLS, the mask is zeros: it changes nothing, and neither side
 * applies it.
 */
export function maskOptions(url: string): { readonly generateMask?: (mask: Uint8Array) => void } {
  const { protocol, hostname } = new URL(url)
  const unseen = protocol === 'https:' || LOOPBACK.test(hostname)
  return unseen ? { generateMask: (mask) => void mask.fill(0) } : {}
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/
