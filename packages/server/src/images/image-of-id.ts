import { SandlotError } from '@sandlot/protocol'

/** The image that a start from the id of a snapshot or a template uses, in a project. */
export type ImageOfId = (project: string, id: string) => Promise<string>

/** Fails with `template_unknown`, or `image_unknown` for ids of another kind. */
export function imageOfIds(templates: {
  get(project: string, id: string): Promise<{ readonly image: string }>
}): ImageOfId {
  return async (project, id) => {
    if (id.startsWith('tp_')) return (await templates.get(project, id)).image
    throw new SandlotError('image_unknown', `there is no ${JSON.stringify(id.slice(0, 64))}`)
  }
}
