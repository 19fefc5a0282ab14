/**
 * The JSON of a value that is plain data: text, finite numbers, true, false, null, arrays, objects. What JSON would drop or change without
 * a word is a `TypeError` that names its place. undefined has no JSON; a field that is undefined is left out.
 */
export function plainJson(value: unknown, name: string): string | undefined {
  checkPlain(value, name, new Set())
  return JSON.stringify(value)
}

function checkPlain(value: unknown, at: string, above: Set<object>): void {
  if (typeof value === 'number' && !Number.isFinite(value)) throw notPlain(at, String(value))
  if (typeof value !== 'object' || value === null) {
    if (['function', 'symbol', 'bigint'].includes(typeof value)) throw notPlain(at, what(value))
    return
  }
  if (above.has(value)) throw new TypeError(`${at} contains itself: pass plain data`)
  above.add(value)
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      if (item === undefined) throw notPlain(`${at}[${index}]`, 'undefined')
      checkPlain(item, `${at}[${index}]`, above)
    }
  } else {
    const prototype: unknown = Object.getPrototypeOf(value)
    // An object of another realm has a prototype of its own.
    const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null
    if (!isPlain) throw notPlain(at, what(value))
    for (const [key, field] of Object.entries(value)) checkPlain(field, `${at}.${key}`, above)
  }
  above.delete(value)
}

function what(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'object' && value !== null) {
    const name = value.constructor?.name
    return name ? `of class ${name}` : 'an object of a class'
  }
  return `a ${typeof value}`
}

function notPlain(at: string, is: string): TypeError {
  return new TypeError(`${at} is ${is}: pass plain data (text, numbers, arrays, objects)`)
}
