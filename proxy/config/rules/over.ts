import { z } from 'zod'
import { duration, wholeNumber } from '../../../shared/settings/kinds.ts'
import type { OverPolicy, Policy } from '../../policy.ts'

const needsOver = 'needs refuse, { route: NAME } or { delay: 2s, waiting: 1000 }'
const needsRoute = 'needs the name of a route'
const MAX_WAITING = 100_000

/** The fields of `over`, as written. */
const overFields = {
  route: z.string(needsRoute).min(1, needsRoute).optional().meta({
    description: 'Name of the route that requests over the limit are sent to, with X-Sluice-Over: RULE.',
  }),
  delay: duration('1ms', '60s', ['ms', 's']).schema.optional().meta({
    description: 'With token-bucket: maximum time that a request over the limit waits for its turn.',
  }),
  waiting: wholeNumber(1, MAX_WAITING).schema.optional().meta({
    description:
      'With delay: maximum requests that wait at the same time, per worker process. Default: 1000.',
  }),
}

/** Whether no field is mistyped: report a mistyped name as one mistake. */
const when = ({ issues }: { readonly issues: readonly unknown[] }): boolean => issues.length === 0

const mapping = z
  .strictObject(overFields, needsOver)
  .refine(({ delay, waiting }) => waiting === undefined || delay !== undefined, {
    path: ['waiting'],
    error: 'needs delay too',
    when,
  })
  .refine(({ route, delay }) => (route === undefined) !== (delay === undefined), {
    error: 'needs either route or delay',
    when,
  })
  .transform(({ route = '', delay, waiting = 1000 }): OverPolicy | undefined =>
    delay === undefined ? { route } : { delayMs: delay, waiting },
  )

/** `over` of a rule, as written: how to handle requests over the limit. Undefined if they are refused. */
export const over = z.union(
  [
    z
      .string(needsOver)
      .regex(/^refuse$/, needsOver)
      .transform((): OverPolicy | undefined => undefined),
    mapping,
  ],
  { error: needsOver },
)

type Written = Pick<Policy, 'ban' | 'over' | 'countStatus' | 'cost' | 'algorithm'> & {
  readonly refusal?: object | undefined
  readonly concurrency?: number | undefined
}

type Mistake = {
  readonly field: 'ban' | 'refusal' | 'over' | 'countStatus' | 'cost'
  readonly message: string
}

const needsBucket =
  'has delay, which needs algorithm: token-bucket: there each request has a turn of its own, in any replica'
const givesBack = 'cannot be combined with over: { delay }, as the turns of requests that wait are fixed'
const refusesNothing = 'has no effect with over: { route }, as the rule refuses nothing'

/** Finds fields of a rule that contradict its `over`. */
export function findMistakesBesideOver(rule: {
  readonly [Field in keyof Written]: Written[Field] | undefined
}): Mistake[] {
  const { over: written, ban, refusal, countStatus, cost, algorithm, concurrency } = rule
  if (!written) return []
  const found: Mistake[] = []
  if ('route' in written) {
    if (ban) found.push({ field: 'ban', message: refusesNothing })
    if (refusal) found.push({ field: 'refusal', message: refusesNothing })
    return found
  }
  if (algorithm !== 'token-bucket' || concurrency !== undefined)
    found.push({ field: 'over', message: needsBucket })
  if (countStatus) found.push({ field: 'countStatus', message: givesBack })
  if (cost?.settle) found.push({ field: 'cost', message: givesBack })
  return found
}
