import type { z } from 'zod'
import type { ErrorReply } from '../../../shared/error-replies.ts'

/** Error replies for an invalid body or query. */
export type BodyErrors = {
  /** Something is missing, or unknown, or wrong where nothing else is said of it. */
  readonly otherwise: ErrorReply
  /** Of values that are wrong, by their names; the first of them counts. */
  readonly [field: string]: ErrorReply
}

export type Checked<Schema extends z.ZodType> = { readonly schema: Schema; readonly errors: BodyErrors }

/** Reads the body of a request to the API by the schema that also describes it. */
export function readBody<Schema extends z.ZodType>(
  { schema, errors }: Checked<Schema>,
  body: unknown,
): { readonly value: z.output<Schema> } | { readonly error: ErrorReply } {
  const read = schema.safeParse(body)
  if (read.success) return { value: read.data }
  const isThere = (field: unknown): field is string =>
    typeof field === 'string' && typeof body === 'object' && body !== null && Object.hasOwn(body, field)
  const wrong = new Set(read.error.issues.map(({ path: [field] }) => (isThere(field) ? field : 'otherwise')))
  const told = Object.keys(errors).filter((field) => field !== 'otherwise')
  const isTold = [...wrong].every((field) => told.includes(field))
  const first = isTold ? told.find((field) => wrong.has(field)) : undefined
  return { error: (first !== undefined && errors[first]) || errors.otherwise }
}

/** The same for a query. Of a parameter that is repeated the first counts, and unknown ones are ignored. */
export function readQuery<Schema extends z.ZodType>(
  checked: Checked<Schema>,
  query: URLSearchParams,
): { readonly value: z.output<Schema> } | { readonly error: ErrorReply } {
  return readBody(checked, Object.fromEntries([...query].reverse()))
}
