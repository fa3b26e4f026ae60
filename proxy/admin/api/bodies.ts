import { z } from 'zod'
import { errors, type ErrorReply } from '../../../shared/error-replies.ts'
import { longDuration } from '../../../shared/settings/kinds.ts'
import { fitsInLine, isHeaderName } from '../../limits/explain/request-text.ts'
import { MAX_QUOTA } from '../../policy.ts'
import { createAddressReader } from '../../request/addresses/client-address.ts'

/*
 * Request bodies of the API. These schemas check the requests and describe them in `/api/openapi.json`; the parts that depend on
 * the current rules are checked where they are used.
 */

/** Error replies for an invalid body or query. */
export type BodyErrors = {
  /** The error for a body with missing or unknown fields, or with a wrong value of a field that has no error of its own. */
  readonly otherwise: ErrorReply
  /** The error for a wrong value, by field. If several fields are wrong, the first one listed here counts. */
  readonly [field: string]: ErrorReply
}

/** The name of a rule. */
const policy = z.string()
/** A client in the form that `chargesOfClient` accepts. */
const client = z.union([z.string(), z.record(z.string(), z.union([z.string(), z.literal(true)]))])
/** A text for people. */
const text = z
  .string()
  .max(200)
  .regex(/^\P{Cc}*$/u)

export const question = {
  schema: z.strictObject({ client, policy: policy.optional() }),
  errors: { otherwise: errors.questionUnreadable, client: errors.clientUnreadable },
}

const entryErrors = {
  policy: errors.noSuchPolicy,
  for: errors.durationUnreadable,
  client: errors.clientUnreadable,
} satisfies Partial<BodyErrors>

export const banned = {
  schema: z.strictObject({
    client,
    for: longDuration.schema,
    policy: policy.optional(),
    reason: text.optional(),
  }),
  errors: { otherwise: errors.banUnreadable, ...entryErrors, reason: errors.reasonUnreadable },
}

export const unbanned = {
  schema: z.strictObject({
    client,
    policy: policy
      .nullable()
      .optional()
      .describe('null lifts the ban from everything, and none under a rule'),
  }),
  errors: { ...entryErrors, otherwise: errors.questionUnreadable },
}

export const overridden = {
  schema: z.strictObject({
    policy,
    client,
    requests: z.int().min(1).max(MAX_QUOTA),
    for: longDuration.schema,
    label: text.optional(),
  }),
  errors: {
    otherwise: errors.overrideUnreadable,
    ...entryErrors,
    requests: errors.requestsUnreadable,
    label: errors.labelUnreadable,
  },
}

export const overrideRemoved = {
  schema: z.strictObject({ policy, client }),
  errors: { ...entryErrors, otherwise: errors.overrideRemovalUnreadable },
}

export const planned = {
  schema: z.strictObject({
    client,
    policy: policy.optional(),
    plan: z.string().min(1).max(64).nullable().optional(),
  }),
  errors: { ...entryErrors, otherwise: errors.planUnreadable, plan: errors.noSuchPlan },
}

const line = z.string().min(1).refine(fitsInLine)
const value = z.string().refine(fitsInLine)
const addresses = createAddressReader([])

export const explained = {
  schema: z.strictObject({
    method: line,
    target: line,
    host: value.optional(),
    ip: z
      .string()
      .refine((text) => addresses.readPeer(text) !== undefined)
      .default('127.0.0.1'),
    headers: z.record(z.string().refine(isHeaderName), z.union([value, z.array(value)])).default({}),
    body: z.string().optional(),
  }),
  errors: {
    otherwise: errors.explainUnreadable,
    ip: errors.explainAddressUnreadable,
    headers: errors.explainHeadersUnreadable,
  },
}

export const reloaded = {
  schema: z.strictObject({}),
  errors: { otherwise: errors.reloadUnreadable },
}

const DEFAULT_LIST_LIMIT = 100

/** The maximum length of a list. @param max the largest number that the query may request */
function limitTo(max: number) {
  const digits = z.string().regex(/^[1-9]\d{0,8}$/)
  return digits.transform(Number).pipe(z.int().min(1).max(max)).default(DEFAULT_LIST_LIMIT)
}

/** The query of a list of clients over a limit. */
export const limitedQuery = {
  schema: z.object({ policy: policy.optional(), limit: limitTo(1000) }),
  errors: { otherwise: errors.listLimitUnreadable },
}

/** The query of a list of bans or overrides. */
export const entriesQuery = {
  schema: z.object({ limit: limitTo(10_000) }),
  errors: { otherwise: errors.entriesLimitUnreadable },
}
