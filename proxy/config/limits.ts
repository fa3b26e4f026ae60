import { z } from 'zod'
import { duration, oneOf, wholeNumber } from '../../shared/settings/kinds.ts'
import { LARGEST_SLIDING_QUOTA, type Rule } from '../policy.ts'
import { hostPattern } from './host-pattern.ts'
import { isCovered, toSegments } from './pattern-cover.ts'
import { mixesGlobal, partitionPart, repeatsPart } from './partition-key.ts'
import { routePattern } from './route-pattern.ts'

/** A valid name of a rule. */
export const ruleName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

const needsName =
  'needs 1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or a digit'

/** The name of a rule as written, valid or not; undefined if it is not text. */
export function writtenName(rule: unknown): string | undefined {
  const name: unknown = typeof rule === 'object' && rule !== null && 'name' in rule ? rule.name : undefined
  return typeof name === 'string' ? name : undefined
}

/** The fields of a rule, as written. */
export const ruleFields = {
  name: z
    .string(needsName)
    .regex(ruleName, needsName)
    .meta({ description: 'Name of the rule in response headers, metrics and Redis keys. Must be unique.' }),
  match: oneOrMany(routePattern).meta({
    description: 'Requests that the rule counts: METHOD[,METHOD] PATH, or a list of them.',
  }),
  except: oneOrMany(routePattern)
    .optional()
    .meta({ description: 'Requests that are excluded from match, in the same form.' }),
  hosts: oneOrMany(hostPattern)
    .refine((hosts) => new Set(hosts).size === hosts.length, 'needs each host only once')
    .optional()
    .meta({
      description:
        'Hosts whose requests the rule counts: a name, *.NAME, or a list of them. Default: every host.',
    }),
  key: oneOrMany(partitionPart)
    .refine((parts) => !repeatsPart(parts), 'needs each part only once')
    .refine((parts) => !mixesGlobal(parts), 'needs global alone, as it counts all clients together')
    .prefault('ip')
    .meta({
      description:
        'What identifies a client: ip, host, header:NAME, or a list of them combined; global counts all clients together.',
    }),
  requests: wholeNumber(1, 1_000_000_000).schema.meta({
    description: 'Number of requests allowed per client and window.',
  }),
  window: duration('1s', '365d', ['s', 'm', 'h', 'd']).schema.meta({
    description: 'Length of the window.',
  }),
  algorithm: oneOf(['fixed', 'sliding']).schema.prefault('fixed').meta({
    description:
      "fixed: the window starts with the client's first request; sliding: the limit holds in any span of that length.",
  }),
  mode: oneOf(['enforce', 'shadow'])
    .schema.prefault('enforce')
    .meta({ description: 'enforce refuses what is over the limit; shadow only counts and reports it.' }),
  onStoreError: oneOf(['local', 'open', 'closed']).schema.prefault('local').meta({
    description:
      'While Redis is unavailable: local counts in this process, open allows the request, closed answers 503.',
  }),
}

const rule = z
  .strictObject(ruleFields, 'needs a mapping with name, match, requests and window')
  .refine(
    (rule) => !countsNothing(rule),
    'can never match: its except excludes everything that its match includes',
  )
  .refine(({ algorithm, requests }) => algorithm === 'fixed' || requests <= LARGEST_SLIDING_QUOTA, {
    path: ['requests'],
    error: `needs a whole number from 1 to ${LARGEST_SLIDING_QUOTA} where the window slides`,
  })
  .transform(toRule)

/** The limits table, as written. Whether names are unique is checked elsewhere (`findRepeatedNames`). */
export const limits = z.array(rule, 'needs a list of rules').meta({
  description: 'The limits table. Without it, the built-in table applies; an empty list means no limits.',
})

type WrittenRule = z.output<z.ZodObject<typeof ruleFields>>

function countsNothing({ match, except = [] }: WrittenRule): boolean {
  const excepted = except.map(toSegments)
  return match.length > 0 && match.every((pattern) => isCovered(toSegments(pattern), excepted))
}

function toRule({ match, except = [], hosts, ...rule }: WrittenRule): Rule {
  const { name, requests, window, algorithm, mode, onStoreError, key } = rule
  return {
    policy: { name, quota: requests, windowMs: window, algorithm, mode, onStoreError, partition: key },
    ...(hosts && { hosts }),
    match,
    except,
  }
}

function oneOrMany<Item, Written>(item: z.ZodType<Item, Written>): z.ZodType<Item[], Written | Written[]> {
  const many = z.array(item).min(1, 'needs at least one entry')
  return z.union([item.transform((only) => [only]), many])
}
