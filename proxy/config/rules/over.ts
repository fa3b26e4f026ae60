import { z } from 'zod'
import type { OverPolicy, Policy } from '../../policy.ts'

const needsOver = 'needs refuse, or { route: NAME }'
const needsRoute = 'needs the name of a route'

/** The fields of `over`, as written. */
export const overFields = {
  route: z.string(needsRoute).min(1, needsRoute).meta({
    description: 'Name of the route that requests over the limit are sent to, with X-Sluice-Over: RULE.',
  }),
}

/** What becomes of requests over the limit of a rule, as written. Undefined for those that are refused. */
export const over = z.union(
  [
    z
      .string(needsOver)
      .regex(/^refuse$/, needsOver)
      .transform((): OverPolicy | undefined => undefined),
    z.strictObject(overFields, needsOver).transform((written): OverPolicy | undefined => written),
  ],
  { error: needsOver },
)

type Written = Pick<Policy, 'ban' | 'over'> & { readonly refusal?: object | undefined }

/** Finds fields of a rule that have no effect beside its `over`. */
export function findIdleBesideOver({
  over: written,
  ban,
  refusal,
}: { readonly [Field in keyof Written]: Written[Field] | undefined }): {
  readonly field: 'ban' | 'refusal'
  readonly message: string
}[] {
  if (!written) return []
  const message = 'has no effect with over: { route }, as the rule refuses nothing'
  return [
    ...(ban ? [{ field: 'ban', message } as const] : []),
    ...(refusal ? [{ field: 'refusal', message } as const] : []),
  ]
}
