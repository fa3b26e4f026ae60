import type { z } from 'zod'
import type { ErrorReply } from '../../../shared/error-replies.ts'
import type { ApiAnswer } from './api.ts'
import type * as bodies from './bodies.ts'

/** Names of the schemas in `bodies.ts`. */
type Name = keyof typeof bodies

type Checked = { readonly schema: z.ZodType; readonly errors: bodies.BodyErrors }

/** A body or query that fits its schema. */
export type Asked<Body extends Name> = z.output<(typeof bodies)[Body]['schema']>

/**
 * Makes an answer for requests whose body fits a schema. All other requests get the matching error of the schema. The schemas are loaded on
 * the first request, because few gateways get such requests.
 */
export function withBody<Body extends Name>(name: Body, answer: (asked: Asked<Body>) => unknown): ApiAnswer {
  return (_query, body) => answerTo(name, body, answer)
}

/**
 * Does what `withBody` does, for a query. Only the first of several parameters with the same name counts. Unknown parameters are ignored.
 */
export function withQuery<Query extends Name>(
  name: Query,
  answer: (asked: Asked<Query>) => unknown,
): ApiAnswer {
  return (query) => answerTo(name, Object.fromEntries([...query].reverse()), answer)
}

async function answerTo<Body extends Name>(
  name: Body,
  sent: unknown,
  answer: (asked: Asked<Body>) => unknown,
): Promise<unknown> {
  const { [name]: checked } = await import('./bodies.ts')
  const read = check(checked, sent)
  return 'error' in read ? read.error : answer(read.value as Asked<Body>)
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
