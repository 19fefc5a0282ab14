import { SandlotError } from '@sandlot/protocol'

/**
 * A refusal that names fields of the API, as one that names the options of a verb: `fields` has the option of each, such as
 * `{ 'resources.memory': '--memory' }`. What is below a field stands behind its option.
 */
export function inOptions(thrown: unknown, fields: Readonly<Record<string, string>>): unknown {
  if (!(thrown instanceof SandlotError) || thrown.code !== 'invalid_request') return thrown
  const { message, hint, details } = thrown
  const said = message.replace(/(^|; )(?:body\.)?([\w.]+): /g, (whole, before, path: string) => {
    const option = optionOf(path, fields)
    return option === undefined ? whole : `${before}${option}: `
  })
  return new SandlotError('invalid_request', said, {
    ...{ hint, cause: thrown },
    ...(details ? { details } : {}),
  })
}

function optionOf(path: string, fields: Readonly<Record<string, string>>): string | undefined {
  const field = Object.keys(fields)
    .filter((each) => path === each || path.startsWith(`${each}.`))
    .sort((a, b) => b.length - a.length)[0]
  if (field === undefined) return undefined
  const below = path.slice(field.length + 1)
  // Which of several it is: its name, where it has one.
  return below === '' || /^\d+$/.test(below) ? fields[field] : `${fields[field]} ${below}`
}
