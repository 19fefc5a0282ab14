import { idOf, SandlotError } from '@sandlot/protocol'

type NamedKind = 'sandbox' | 'image'

/** The id in a path. Throws `…_unknown` of its kind for what is no id of it: nothing of that name can exist. */
export function checkedId(kind: NamedKind, text: string | undefined): string {
  const parsed = SCHEMAS[kind].safeParse(text)
  if (parsed.success) return parsed.data
  const shown = JSON.stringify((text ?? '').slice(0, 64))
  const article = kind === 'image' ? 'an' : 'a'
  throw new SandlotError(`${kind}_unknown`, `${shown} is not the id of ${article} ${kind}`)
}

const SCHEMAS = {
  sandbox: idOf('sandbox'),
  image: idOf('image'),
} as const
