/** JSON Schema of what crosses the wire, with the shapes that have a name of their own as components. */
import {
  attemptRow,
  errorEnvelope,
  execAnswer,
  execView,
  fileEntry,
  fileStat,
  gradeSpec,
  imageBuildLine,
  imageSource,
  imageView,
  resources,
  resultRow,
  runCreate,
  runReport,
  runView,
  sandboxCreate,
  sandboxView,
  taskPut,
  templateCreate,
  templateLine,
  templateView,
} from '@sandlot/protocol'
import { z } from 'zod'

export interface JsonSchema {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly additionalProperties?: JsonSchema | boolean
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly not?: JsonSchema
  readonly $ref?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
}

/** What a client sends, or what it gets. */
export type Direction = 'input' | 'output'

/** Shapes with a name, each in the direction in which it travels. */
const NAMED = {
  SandboxCreate: [sandboxCreate, 'input'],
  Resources: [resources, 'input'],
  SandboxView: [sandboxView, 'output'],
  ExecAnswer: [execAnswer, 'output'],
  ExecView: [execView, 'output'],
  FileStat: [fileStat, 'output'],
  FileEntry: [fileEntry, 'output'],
  ImageSource: [imageSource, 'input'],
  ImageView: [imageView, 'output'],
  ImageBuildLine: [imageBuildLine, 'output'],
  TemplateCreate: [templateCreate, 'input'],
  TemplateView: [templateView, 'output'],
  TemplateLine: [templateLine, 'output'],
  RunCreate: [runCreate, 'input'],
  GradeSpec: [gradeSpec, 'input'],
  TaskPut: [taskPut, 'input'],
  RunView: [runView, 'output'],
  RunReport: [runReport, 'output'],
  ResultRow: [resultRow, 'output'],
  AttemptRow: [attemptRow, 'output'],
  ErrorEnvelope: [errorEnvelope, 'output'],
} as const satisfies Record<string, readonly [z.ZodType, Direction]>

export const COMPONENT = '#/components/schemas/'

/** The schema, in which named shapes are references to components. */
export function schemaOf(schema: z.ZodType, direction: Direction): JsonSchema {
  const { $schema: _, $defs: __, ...own } = convert(schema, direction)
  return own
}

export interface Shape {
  readonly name: string
  readonly direction: Direction
  readonly schema: JsonSchema
}

/** Every named shape. */
export function shapes(): readonly Shape[] {
  return Object.entries(NAMED).map(([name, [schema, direction]]) => {
    const { $schema: _, $defs, ...own } = convert(schema, direction)
    // A shape that is a reference to itself stands among the definitions.
    const { id: __, ...body } = own.$ref ? ($defs?.[name] ?? own) : own
    return { name, direction, schema: body }
  })
}

type Converted = JsonSchema & {
  readonly $schema?: string
  readonly id?: string
  readonly $defs?: Readonly<Record<string, Converted>>
}

function convert(schema: z.ZodType, direction: Direction): Converted {
  const metadata = z.registry<{ id: string }>()
  for (const [id, [named]] of Object.entries(NAMED)) metadata.add(named, { id })
  const converted = z.toJSONSchema(schema, {
    io: direction,
    metadata,
    unrepresentable: 'any',
    override: ({ jsonSchema }) => {
      // An answer may get more fields later, and a client must not mind.
      if (direction === 'output' && jsonSchema.additionalProperties === false) {
        delete jsonSchema.additionalProperties
      }
      // Words of zod that JSON Schema does not know.
      if (jsonSchema.format === 'starts_with') delete jsonSchema.format
    },
  })
  return JSON.parse(JSON.stringify(converted).replaceAll('"#/$defs/', `"${COMPONENT}`))
}
