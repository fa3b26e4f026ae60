import type { z } from 'zod'
import type { ErrorReply } from '../../../shared/error-replies.ts'
import type * as bodies from './bodies.ts'

/** Names of the schemas in `bodies.ts`. */
type Name = keyof typeof bodies

type Checked = { readonly schema: z.ZodType; readonly errors: bodies.BodyErrors }

type Read<Body extends Name> =
  { readonly value: z.output<(typeof bodies)[Body]['schema']> } | { readonly error: ErrorReply }

/**
 * Reads the body of a request to the API by the schema that also describes it. The schemas are loaded for the first such request: few
 * gateways get any.
 */
export async function readBody<Body extends Name>(name: Body, body: unknown): Promise<Read<Body>> {
  const { [name]: checked } = await import('./bodies.ts')
  return check(checked, body) as Read<Body>
}

function check(
  { schema, errors }: Checked,
  body: unknown,
): { readonly value: unknown } | { readonly error: ErrorReply } {
  const read = schema.safeParse(body)
  if (read.success) return { value: read.data }
  const isThere = (field: unknown): field is string =>
    typeof field === 'string' && typeof body === 'object' && body !== null && Object.hasOwn(body, field)
  const wrong = new Set(read.error.issues.map(({ path: [field] }) => (isThere(field) ? field : 'otherwise')))
  const described = Object.keys(errors).filter((field) => field !== 'otherwise')
  const areDescribed = [...wrong].every((field) => described.includes(field))
  const first = areDescribed ? described.find((field) => wrong.has(field)) : undefined
  return { error: (first !== undefined && errors[first]) || errors.otherwise }
}

/** The same for a query. Of a parameter that is repeated the first counts, and unknown ones are ignored. */
export function readQuery<Query extends Name>(name: Query, query: URLSearchParams): Promise<Read<Query>> {
  return readBody(name, Object.fromEntries([...query].reverse()))
}
