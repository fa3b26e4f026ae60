import { expect, test } from 'vitest'
import { algorithms, withPlan, withQuota } from '../../../../proxy/limits/algorithms/registry.ts'
import { makePolicy } from '../../../support/limiter/charges.ts'

const windowMs = 60_000
const counting = algorithms.filter(({ rule }) => rule.ownField === undefined && !rule.isChosen)

test.each(counting)(
  'under $name, a client with another quota has as many requests per window as written',
  ({ name, rule }) => {
    const written = { requests: 10, window: windowMs, burst: rule.takesBurst ? 30 : undefined }
    const policy = makePolicy('a', 10, windowMs, {
      algorithm: name,
      plans: { quotas: { pro: 40 } },
      ...rule.toQuota(written),
    })
    for (const other of [withQuota(policy, 40), withPlan(policy, 'pro')])
      expect(other.windowMs / other.quota).toBe(windowMs / 40)
  },
)
