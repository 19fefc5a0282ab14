/** `await using` needs two symbols that the first releases of Node.js 20 lack. Imported before anything that uses them. */
const symbols = Symbol as { dispose?: symbol; asyncDispose?: symbol }
symbols.dispose ??= Symbol.for('Symbol.dispose')
symbols.asyncDispose ??= Symbol.for('Symbol.asyncDispose')
