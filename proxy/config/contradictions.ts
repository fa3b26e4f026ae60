import { mistakeOfAccounts, type OverrideClient } from './clients/override-accounts.ts'
import type { Algorithm } from '../limits/algorithms/algorithm.ts'
import { calendarUnits } from '../limits/algorithms/calendar/calendar.ts'
import { algorithmOf, algorithms, usualAlgorithm } from '../limits/algorithms/registry.ts'
import { mistakesOfDevice } from './rules/device/contradictions.ts'
import { rangeName } from './rules/rule-cost.ts'
import {
  singleSources,
  type BanPolicy,
  type CalendarUnit,
  type Cost,
  type DevicePolicy,
  type Policy,
  type RoutePattern,
  type StatusRange,
} from '../policy.ts'
import { partName, singleParts, type PartitionPart } from '../policy/partition.ts'

/** The fields of a rule that determine its quota and how it counts. */
type Counting = {
  readonly match: readonly RoutePattern[]
  readonly requests?: number | undefined
  readonly window?: number | CalendarUnit | undefined
  readonly timezone?: string | undefined
  readonly concurrency?: number | undefined
  readonly countStatus?: readonly StatusRange[] | undefined
  readonly cost?: Cost | undefined
  readonly burst?: number | undefined
  readonly algorithm: Policy['algorithm']
  readonly ban?: BanPolicy | undefined
  readonly lease?: 'auto' | number | undefined
  readonly device?: DevicePolicy | undefined
  readonly key: readonly PartitionPart[]
  readonly plans?: Readonly<Record<string, number>> | undefined
  readonly overrides?:
    | readonly { readonly requests: number; readonly clients?: readonly OverrideClient[] | undefined }[]
    | undefined
}

type Contradiction = { readonly field: keyof Counting; readonly message: string }

const optionalFields = [
  'requests',
  'window',
  'countStatus',
  'cost',
  'burst',
  'ban',
  'algorithm',
  'lease',
] as const

const namesWithBurst = algorithms
  .filter(({ rule }) => rule.takesBurst)
  .map(({ name }) => name)
  .join(' or ')

/** Returns the algorithm by which a rule, as written, counts. */
export function algorithmOfRule(rule: Pick<Counting, 'algorithm' | 'concurrency' | 'window'>): Algorithm {
  const byField =
    algorithms.find(({ rule: { ownField } }) => ownField && rule[ownField] !== undefined) ??
    algorithms.find((each) => each.rule.isChosen?.(rule))
  return byField ?? algorithmOf(rule)
}

/** Finds fields that cannot be combined in one rule. */
export function findContradictions(rule: Counting): Contradiction[] {
  const { requests, cost, countStatus, algorithm, burst } = rule
  const found: Contradiction[] = []
  const add = (field: Contradiction['field'], message: string | undefined): void => {
    if (message !== undefined) found.push({ field, message })
  }
  const otherQuotas = [
    ['overrides', (rule.overrides ?? []).map((override) => override.requests)],
    ['plans', Object.values(rule.plans ?? {})],
  ] as const
  if (rule.ban && singleParts(rule.key).some(({ kind }) => kind === 'global'))
    add('ban', 'cannot be combined with key: global, as it would ban all clients together')
  for (const message of mistakesOfDevice(rule)) add('device', message)
  add('overrides', mistakeOfAccounts(rule.key, rule.overrides ?? []))
  add('key', keyWithoutBody(rule))
  const chosen = algorithmOfRule(rule)
  const { maxQuota, when, excludes } = chosen.rule
  if (when !== undefined && requests !== undefined && requests > maxQuota)
    add('requests', `needs a whole number from 1 to ${maxQuota} ${when}`)
  for (const [field, quotas] of otherQuotas)
    if (when !== undefined && quotas.some((allowed) => allowed > maxQuota))
      add(field, `need requests from 1 to ${maxQuota} ${when}`)
  for (const field of optionalFields) {
    const isWritten = field === 'algorithm' ? algorithm !== usualAlgorithm.name : rule[field] !== undefined
    if (isWritten) add(field, excludes[field])
  }
  if (rule.timezone !== undefined && typeof rule.window !== 'string')
    add('timezone', `has no effect without window: ${calendarUnits.join(', ')}`)
  if (chosen.rule.ownField !== undefined) return found
  const reserved = cost === undefined ? 0 : statedReserve(cost)
  const isTooSmall = (allowed: number): boolean => allowed > 0 && reserved > allowed
  for (const [field, quotas] of otherQuotas)
    if (quotas.some(isTooSmall))
      add(field, `need requests of at least ${reserved} (cost), or no request could ever pass`)
  if (burst !== undefined && !chosen.rule.takesBurst) add('burst', `needs algorithm: ${namesWithBurst}`)
  const atOnce = requests === undefined ? burst : chosen.rule.toQuota(rule).quota
  if (atOnce !== undefined && isTooSmall(atOnce)) {
    const name = burst === undefined ? 'requests' : 'burst'
    add('cost', `needs to reserve at most ${atOnce} (${name}), or no request could ever pass`)
  }
  const mistake = chosen.rule.findMistake?.(rule)
  if (mistake) add(mistake.field, mistake.message)
  add('cost', costWithoutBody(rule))
  add('countStatus', mistakeInStatuses(countStatus))
  return found
}

const methodsWithoutBody = new Set(['GET', 'HEAD', 'OPTIONS', 'CONNECT', 'TRACE'])

function hasOnly(match: readonly RoutePattern[], names: ReadonlySet<string>): boolean {
  return (
    match.length > 0 &&
    match.every(({ methods }) => methods.length > 0 && methods.every((method) => names.has(method)))
  )
}

/** Reports a key that reads the body of requests without a body. */
function keyWithoutBody({ match, key }: Counting): string | undefined {
  const part = singleParts(key).find(({ kind }) => kind === 'body')
  return part && hasOnly(match, methodsWithoutBody)
    ? `has ${partName(part)}, needs a method in match whose requests have a body, such as POST`
    : undefined
}

/** Reports a cost that reads the body of requests or responses without a body, such as responses to HEAD. */
function costWithoutBody({ match, cost }: Counting): string | undefined {
  const onlyHas = (names: ReadonlySet<string>): boolean => hasOnly(match, names)
  if (typeof cost?.reserve === 'object' && onlyHas(methodsWithoutBody))
    return 'needs a method in match whose requests have a body, such as POST, to reserve what their JSON says'
  const { settle } = cost ?? {}
  return settle && singleSources(settle).every(({ kind }) => kind === 'json') && onlyHas(new Set(['HEAD']))
    ? 'needs a method in match besides HEAD, whose responses have no body to read'
    : undefined
}

function mistakeInStatuses(ranges: readonly StatusRange[] = []): string | undefined {
  if (coversAll(ranges)) return 'names all status codes: leave it out instead'
  const interim = ranges.find(({ first, last }) => last < 200 && (101 < first || last < 101))
  if (interim) return `names ${interim.first}: no response ends with an interim status`
  const twice = ranges.find((range, at) =>
    ranges.some(
      (other, place) =>
        place !== at &&
        other.first <= range.first &&
        range.last <= other.last &&
        (range.first !== other.first || range.last !== other.last || place < at),
    ),
  )
  return twice && `names ${rangeName(twice)} twice`
}

/** The units that a rule reserves by itself. Units stated in a request never exceed the quota. */
function statedReserve({ reserve }: Cost): number {
  return typeof reserve === 'number' ? reserve : (reserve.otherwise ?? 0)
}

function coversAll(ranges: readonly StatusRange[]): boolean {
  return [1, 2, 3, 4, 5].every((digit) =>
    ranges.some(({ first, last }) => first === 100 * digit && last === 100 * digit + 99),
  )
}
