import { LARGEST_SLIDING_QUOTA, type Cost, type Policy, type StatusRange } from '../policy.ts'

/** What a rule says of how much and how it counts. */
type Counting = {
  readonly requests?: number | undefined
  readonly window?: number | undefined
  readonly concurrency?: number | undefined
  readonly countStatus?: readonly StatusRange[] | undefined
  readonly cost?: Cost | undefined
  readonly burst?: number | undefined
  readonly algorithm: Policy['algorithm']
  readonly overrides?: readonly { readonly requests: number }[] | undefined
}

/** The most requests of a client in flight that a rule can allow. */
const LARGEST_CONCURRENCY = 100_000

type Contradiction = { readonly field: keyof Counting; readonly message: string }

/** Finds fields that cannot stand in one rule. */
export function findContradictions(rule: Counting): Contradiction[] {
  const { requests, concurrency, cost, countStatus, algorithm, burst } = rule
  const found: Contradiction[] = []
  const add = (field: Contradiction['field'], message: string): void => void found.push({ field, message })
  const overridden = (rule.overrides ?? []).map((override) => override.requests)
  if (concurrency !== undefined) {
    if (overridden.some((most) => most > LARGEST_CONCURRENCY))
      add('overrides', `need requests from 1 to ${LARGEST_CONCURRENCY} beside concurrency`)
    const message = 'cannot stand beside concurrency, which counts requests while they are in flight'
    for (const field of ['requests', 'window', 'countStatus', 'cost', 'burst'] as const)
      if (rule[field] !== undefined) add(field, message)
    if (algorithm !== 'fixed') add('algorithm', message)
    return found
  }
  if (algorithm === 'sliding' && requests !== undefined && requests > LARGEST_SLIDING_QUOTA)
    add('requests', `needs a whole number from 1 to ${LARGEST_SLIDING_QUOTA} where the window slides`)
  if (algorithm === 'sliding' && overridden.some((most) => most > LARGEST_SLIDING_QUOTA))
    add('overrides', `need requests from 1 to ${LARGEST_SLIDING_QUOTA} where the window slides`)
  if (cost !== undefined && overridden.some((most) => cost.reserve > most))
    add('overrides', `need requests of at least ${cost.reserve} (cost), or no request could ever pass`)
  if (algorithm === 'sliding' && cost !== undefined)
    add('cost', 'needs algorithm: fixed or token-bucket, as a sliding window remembers each unit by its time')
  if (burst !== undefined && algorithm !== 'token-bucket') add('burst', 'needs algorithm: token-bucket')
  const atOnce = burst ?? requests
  if (cost !== undefined && atOnce !== undefined && cost.reserve > atOnce) {
    const name = burst === undefined ? 'requests' : 'burst'
    add('cost', `needs to reserve at most ${atOnce} (${name}), or no request could ever pass`)
  }
  if (countStatus !== undefined && coversAll(countStatus))
    add('countStatus', 'names all status codes, which is the same as to leave it out')
  return found
}

function coversAll(ranges: readonly StatusRange[]): boolean {
  return [1, 2, 3, 4, 5].every((digit) =>
    ranges.some(({ first, last }) => first === 100 * digit && last === 100 * digit + 99),
  )
}
