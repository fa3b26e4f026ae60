import { z } from 'zod'
import { needsText, oneOf, text, wholeNumber } from '../../../shared/settings/kinds.ts'
import { MAX_QUOTA, type Policy, type Rule } from '../../policy.ts'
import { algorithmOf, algorithms, usualAlgorithm } from '../../limits/algorithms/registry.ts'
import { MAX_CONCURRENCY } from '../../limits/algorithms/concurrency/concurrency.ts'
import { ban } from '../clients/ban.ts'
import { clientList, overrideClients } from '../clients/client-list.ts'
import { clientsUnder } from '../clients/override-accounts.ts'
import { algorithmOfRule, findContradictions } from '../contradictions.ts'
import { hostPattern } from '../routes/host-pattern.ts'
import { device } from './device/device.ts'
import { isCovered, toSegments } from './pattern-cover.ts'
import { findLeaseMistakes, lease } from './lease.ts'
import { mistakeInPathKeys, withPatterns } from './path-keys.ts'
import { repeatsNetwork } from './network-key.ts'
import { mixesGlobal, partitionParts, repeatsPart } from './partition-key.ts'
import { conditions } from './conditions/conditions.ts'
import { findConditionMistakes } from './conditions/contradictions.ts'
import { refusal } from '../replies/refusal.ts'
import { findMistakesBesideOver, over } from './over.ts'
import { findPlanMistakes, planSourceKind, plansOf, toPlans } from './plans.ts'
import { routePattern } from './route-pattern.ts'
import { cost, statusRange } from './rule-cost.ts'
import { timezone } from './timezone.ts'
import { needsWindow, ruleWindow } from './window.ts'

/** A valid name of a rule or route. */
export const ruleName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** The schema's error for a name that is not valid. */
export const needsName = {
  error: needsText(
    '1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or a digit',
    (name) => ruleName.test(name),
  ),
}

/** The name of a rule as written, valid or not; undefined if it is not text. */
export function writtenName(rule: unknown): string | undefined {
  const name: unknown = typeof rule === 'object' && rule !== null && 'name' in rule ? rule.name : undefined
  return typeof name === 'string' ? name : undefined
}

/** The algorithms that the setting `algorithm` can name. */
const named = algorithms.filter(({ rule }) => rule.summary !== undefined)

const requestCount = wholeNumber(1, MAX_QUOTA)

const label = text(
  '1 to 200 characters in one line',
  (text) => /^.{1,200}$/u.test(text) && !/\p{Cc}/u.test(text),
).schema

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
  when: conditions.optional().meta({
    description: 'Conditions that must all hold for the rule to apply to a request.',
  }),
  unless: conditions.optional().meta({
    description: 'Conditions that exclude requests: the rule does not apply if one of them holds.',
  }),
  key: partitionParts
    .refine((parts) => !repeatsPart(parts), 'needs each part only once')
    .refine((parts) => !repeatsNetwork(parts), 'needs ip or one network, as the longer prefix decides alone')
    .refine((parts) => !mixesGlobal(parts), 'needs global alone, as it counts all clients together')
    .prefault('ip')
    .meta({
      description:
        'Partition key, which identifies a client: ip, ip/24/48 (network by prefix lengths for IPv4 and IPv6), country, asn, host, header:NAME, cookie:NAME, query:NAME, path:NAME, body:NAME, jwt:CLAIM, or a list of them combined; { first: [...] } uses each of several keys that a request has, or the last one if it has none of them; global counts all clients together.',
    }),
  requests: requestCount.schema.optional().meta({
    description: 'Number of requests allowed per client and window; with cost, number of units.',
  }),
  window: ruleWindow.optional().meta({
    description: 'Length of the window; or hour, day, week or month of the calendar, weeks from Monday.',
  }),
  timezone: timezone.schema.optional().meta({
    description: 'Time zone of a window of the calendar; by default that of timezone at the top.',
  }),
  concurrency: wholeNumber(1, MAX_CONCURRENCY).schema.optional().meta({
    description:
      'In place of requests and window: number of requests of a client in flight at the same time.',
  }),
  countStatus: oneOrMany(statusRange).optional().meta({
    description: 'Count only requests whose response has one of these status codes, such as 401 or 5xx.',
  }),
  cost: cost.optional().meta({
    description: 'Units that a request costs, 1 by default: a number, or where the response states it.',
  }),
  algorithm: oneOf(named.map(({ name }) => name))
    .schema.prefault(usualAlgorithm.name)
    .meta({
      description: `${named.map(({ name, rule }) => `${name}: ${rule.summary}`).join('; ')}.`,
    }),
  burst: requestCount.schema.optional().meta({
    description: 'With token-bucket: number of requests allowed at once; by default the number in requests.',
  }),
  lease: lease.optional(),
  overrides: z
    .array(
      z.strictObject(
        {
          clients: overrideClients.meta({
            description: 'Addresses, headers with the SHA-256 of their value, and accounts as body:NAME.',
          }),
          requests: requestCount.schema.meta({
            description: 'Number of requests allowed for these clients.',
          }),
          label: label.optional().meta({
            description: "Name of these clients in the operators' interface.",
          }),
        },
        'needs a mapping with clients and requests',
      ),
      'needs a list of overrides',
    )
    .optional()
    .meta({
      description: 'Other numbers of requests for some clients, by address, secret header or account.',
    }),
  plans: plansOf(requestCount).optional().meta({
    description: 'Number of requests allowed for clients with a plan, by its name; others have requests.',
  }),
  plan: planSourceKind.optional().meta({
    description:
      'Where to read the plan of a client: jwt:CLAIM for a claim of its verified token, or store for a plan that was set for it.',
  }),
  allowList: clientList
    .optional()
    .meta({ description: 'Clients that the rule neither counts nor refuses, by address or secret header.' }),
  ban: ban
    .optional()
    .meta({ description: 'Ban clients that are refused repeatedly: after, for, max, scope.' }),
  device: device.optional().meta({
    description:
      'Count devices that have signed in to an account apart from all others, so that strangers cannot lock its owner out: status, cookie, for.',
  }),
  refusal: refusal
    .optional()
    .meta({ description: 'Response to requests that the rule refuses, in place of the one for all rules.' }),
  over: over.optional().meta({
    description:
      'What happens to requests over the limit: refuse (default); { route: NAME } sends them to another route; { delay: 2s, waiting: 1000 } lets them wait for their turn.',
  }),
  mode: oneOf(['enforce', 'shadow'])
    .schema.prefault('enforce')
    .meta({ description: 'enforce refuses requests over the limit; shadow only counts and reports them.' }),
  onStoreError: oneOf(['local', 'open', 'closed']).schema.prefault('local').meta({
    description:
      'While Redis is unavailable: local counts in this process, open allows the request, closed answers 503.',
  }),
}

const rule = z
  .strictObject(ruleFields, 'needs a mapping with name, match, requests and window')
  .refine((rule) => hasAnyOf(rule, 'concurrency', 'requests'), missing('requests', requestCount.needs))
  .refine((rule) => hasAnyOf(rule, 'concurrency', 'window'), missing('window', needsWindow))
  .superRefine((rule, context) => {
    for (const { field, message } of [
      ...findContradictions(rule),
      ...findMistakesBesideOver(rule),
      ...findPlanMistakes(rule),
      ...findLeaseMistakes(rule),
    ])
      context.addIssue({ code: 'custom', path: [field], message })
  })
  .refine(
    (rule) => !countsNothing(rule),
    'can never match: its except excludes everything that its match includes',
  )
  .superRefine(({ key, match }, context) => {
    const message = mistakeInPathKeys(key, match)
    if (message !== undefined) context.addIssue({ code: 'custom', path: ['key'], message })
  })
  .superRefine((rule, context) => {
    if (context.issues.length > 0) return
    for (const { path, message } of findConditionMistakes(rule))
      context.addIssue({ code: 'custom', path: [...path], message })
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

/** Reported in addition to all other mistakes of the rule. */
function missing(field: keyof typeof ruleFields, needs: string) {
  return { path: [field], error: `needs ${needs}`, when: () => true }
}

function hasAnyOf(rule: unknown, ...fields: (keyof typeof ruleFields)[]): boolean {
  if (typeof rule !== 'object' || rule === null || Array.isArray(rule)) return true
  return fields.some((field) => field in rule && (rule as Record<string, unknown>)[field] !== undefined)
}

function toRule({
  match,
  except = [],
  hosts,
  when,
  unless,
  allowList,
  overrides,
  refusal,
  ...rule
}: WrittenRule): Rule {
  const policy = toPolicy({ ...rule, key: withPatterns(rule.key, match) })
  return {
    policy,
    ...(hosts && { hosts }),
    ...(when && { when }),
    ...(unless && { unless }),
    ...(allowList && { allowList }),
    ...(overrides && {
      overrides: overrides.map(({ clients, requests, label }, override) => ({
        ...clientsUnder(policy, clients),
        policy: {
          ...policy,
          quota: requests,
          override,
          ...(label !== undefined && { label }),
          ...algorithmOf(policy).rule.ofOtherQuota?.(policy),
        },
      })),
    }),
    ...(refusal && { refusal }),
    match,
    except,
  }
}

function toPolicy(
  rule: Omit<
    WrittenRule,
    'match' | 'except' | 'hosts' | 'when' | 'unless' | 'allowList' | 'overrides' | 'refusal'
  >,
): Policy {
  const { name, mode, onStoreError, key, countStatus, cost, ban, device, over, lease } = rule
  const algorithm = algorithmOfRule(rule)
  const plans = toPlans(rule)
  return {
    name,
    mode,
    onStoreError,
    partition: key,
    algorithm: algorithm.name,
    ...algorithm.rule.toQuota(rule),
    ...(countStatus && { countStatus }),
    ...(cost && { cost }),
    ...(ban && { ban }),
    ...(device && { device }),
    ...(over && { over }),
    ...(lease !== undefined && { lease }),
    ...(plans && { plans }),
  }
}

function oneOrMany<Item, Written>(item: z.ZodType<Item, Written>): z.ZodType<Item[], Written | Written[]> {
  const many = z.array(item).min(1, 'needs at least one entry')
  return z.union([item.transform((only) => [only]), many])
}
