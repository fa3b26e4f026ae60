import { z } from 'zod'
import { MAX_QUOTA, type Cost, type OverPolicy } from '../../policy.ts'

const needsLease = `needs auto, or a whole number from 2 to ${MAX_QUOTA}`

/** `lease` of a rule: how many units the gateway takes in advance at a time. */
export const lease = z
  .union(
    [z.literal('auto', needsLease), z.int(needsLease).min(2, needsLease).max(MAX_QUOTA, needsLease)],
    needsLease,
  )
  .meta({
    description:
      'Units that a gateway takes in advance from Redis and uses without asking it: auto, or how many at a time.',
  })

type Written = {
  readonly lease?: 'auto' | number | undefined
  readonly requests?: number | undefined
  readonly cost?: Cost | undefined
  readonly over?: OverPolicy | undefined
  readonly overrides?: readonly { readonly requests: number }[] | undefined
  readonly plans?: Readonly<Record<string, number>> | undefined
}

/** Finds a `lease` of more units than the lowest quota of a client, or of fewer units than a request costs. */
export function findLeaseMistakes(rule: Written): { field: 'lease'; message: string }[] {
  const { lease: units, requests = Infinity, cost, overrides = [], plans = {}, over } = rule
  if (units !== undefined && over && 'delayMs' in over)
    return [
      {
        field: 'lease',
        message: 'cannot be combined with over: { delay }, as only Redis knows whose turn it is',
      },
    ]
  if (typeof units !== 'number') return []
  const quotas = [requests, ...overrides.map((override) => override.requests), ...Object.values(plans)]
  const minQuota = Math.min(...quotas)
  if (units > minQuota)
    return [
      {
        field: 'lease',
        message: `needs auto, or at most ${minQuota}, or one gateway could take all there is`,
      },
    ]
  const minUnits = typeof cost?.reserve === 'number' ? cost.reserve : 1
  return units < minUnits
    ? [{ field: 'lease', message: `needs auto, or at least ${minUnits} (cost), or no request could use it` }]
    : []
}
