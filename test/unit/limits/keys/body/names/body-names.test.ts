import { expect, test } from 'vitest'
import { bodyNamesOf } from '../../../../../../proxy/limits/keys/body/names/body-names.ts'

// If rules have conditions, a client chooses which ones apply to a request: with 12 rules, one of 4,096 sets.

const policies = Array.from({ length: 12 }, () => ({
  partition: [{ kind: 'body', name: 'email', path: ['email'] } as const],
}))

/** @param set one bit per policy, set if the policy applies */
function namesOf(set: number) {
  return bodyNamesOf(policies.filter((_, i) => (set >> i) & 1))
}

test('the names of a set of rules are made once', () => {
  expect(namesOf(5)).toBe(namesOf(5))
  expect(namesOf(5)).not.toBe(namesOf(6))
})

test('the names of few sets of rules are kept', () => {
  const made = new Set(Array.from({ length: 4096 }, (_, set) => namesOf(set)))
  const again = Array.from({ length: 4096 }, (_, set) => namesOf(4095 - set))
  const kept = again.filter((names) => made.has(names))
  expect(made.size).toBe(4096)
  expect(kept.length).toBeLessThanOrEqual(256)
})
