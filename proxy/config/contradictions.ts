import {
  MAX_CONCURRENCY,
  MAX_SLIDING_QUOTA,
  singleParts,
  singleSources,
  type BanPolicy,
  type Cost,
  type PartitionPart,
  type Policy,
  type RoutePattern,
  type StatusRange,
} from '../policy.ts'

/** The fields of a rule about its quota and its way of counting. */
type Counting = {
  readonly match: readonly RoutePattern[]
  readonly requests?: number | undefined
  readonly window?: number | undefined
  readonly concurrency?: number | undefined
  readonly countStatus?: readonly StatusRange[] | undefined
  readonly cost?: Cost | undefined
  readonly burst?: number | undefined
  readonly algorithm: Policy['algorithm']
  readonly ban?: BanPolicy | undefined
  readonly key: readonly PartitionPart[]
  readonly overrides?: readonly { readonly requests: number }[] | undefined
}

type Contradiction = { readonly field: keyof Counting; readonly message: string }

/** The longest that an empty bucket may take to be full: as long as the longest window. */
const MAX_REFILL_DAYS = 365
const DAY_MS = 86_400_000

/** Finds fields that cannot be combined in one rule. */
export function findContradictions(rule: Counting): Contradiction[] {
  const { requests, concurrency, cost, countStatus, algorithm, burst } = rule
  const found: Contradiction[] = []
  const add = (field: Contradiction['field'], message: string): void => void found.push({ field, message })
  const overridden = (rule.overrides ?? []).map((override) => override.requests)
  if (rule.ban && singleParts(rule.key).some(({ kind }) => kind === 'global'))
    add('ban', 'cannot be combined with key: global, as it would ban all clients together')
  if (concurrency !== undefined) {
    if (overridden.some((most) => most > MAX_CONCURRENCY))
      add('overrides', `need requests from 1 to ${MAX_CONCURRENCY} beside concurrency`)
    const message = 'cannot be combined with concurrency, which counts requests while they are in flight'
    for (const field of ['requests', 'window', 'countStatus', 'cost', 'burst', 'ban'] as const)
      if (rule[field] !== undefined) add(field, message)
    if (algorithm !== 'fixed') add('algorithm', message)
    return found
  }
  if (algorithm === 'sliding' && requests !== undefined && requests > MAX_SLIDING_QUOTA)
    add('requests', `needs a whole number from 1 to ${MAX_SLIDING_QUOTA} where the window slides`)
  if (algorithm === 'sliding' && overridden.some((most) => most > MAX_SLIDING_QUOTA))
    add('overrides', `need requests from 1 to ${MAX_SLIDING_QUOTA} where the window slides`)
  const reserved = cost === undefined ? 0 : statedReserve(cost)
  if (overridden.some((most) => reserved > most))
    add('overrides', `need requests of at least ${reserved} (cost), or no request could ever pass`)
  if (algorithm === 'sliding' && cost !== undefined)
    add('cost', 'needs algorithm: fixed or token-bucket, as a sliding window remembers each unit by its time')
  if (burst !== undefined && algorithm !== 'token-bucket') add('burst', 'needs algorithm: token-bucket')
  const atOnce = burst ?? requests
  if (atOnce !== undefined && reserved > atOnce) {
    const name = burst === undefined ? 'requests' : 'burst'
    add('cost', `needs to reserve at most ${atOnce} (${name}), or no request could ever pass`)
  }
  const maxAtOnce = largestBurst(rule)
  if (burst !== undefined && burst > maxAtOnce)
    add(
      'burst',
      `needs at most ${maxAtOnce}, or an empty bucket would take more than ${MAX_REFILL_DAYS}d to be full`,
    )
  const unseen = bodyThatIsNone(rule)
  if (unseen !== undefined) add('cost', unseen)
  const faulty = mistakeInStatuses(countStatus)
  if (faulty !== undefined) add('countStatus', faulty)
  return found
}

function largestBurst({ requests = 1, window = 1 }: Counting): number {
  return Math.max(1, Math.floor((MAX_REFILL_DAYS * DAY_MS * requests) / window))
}

const methodsWithoutBody = new Set(['GET', 'HEAD', 'OPTIONS', 'CONNECT', 'TRACE'])

/** Bodies that a rule reads although its requests have none, or its responses, as with HEAD. */
function bodyThatIsNone({ match, cost }: Counting): string | undefined {
  const onlyHas = (names: ReadonlySet<string>): boolean =>
    match.length > 0 &&
    match.every(({ methods }) => methods.length > 0 && methods.every((method) => names.has(method)))
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

function rangeName({ first, last }: StatusRange): string {
  return first === last ? String(first) : `${first / 100}xx`
}

/** The units that a rule names to reserve. What a request says is never taken for more than all there are. */
function statedReserve({ reserve }: Cost): number {
  return typeof reserve === 'number' ? reserve : (reserve.otherwise ?? 0)
}

function coversAll(ranges: readonly StatusRange[]): boolean {
  return [1, 2, 3, 4, 5].every((digit) =>
    ranges.some(({ first, last }) => first === 100 * digit && last === 100 * digit + 99),
  )
}
