import { expect, test } from 'vitest'
import { hashTable } from '../../../proxy/config/reload/table-change.ts'
import { reviseRules } from '../../../proxy/rules/continue-rules.ts'
import { loadWithFile } from '../../support/gateway/settings.ts'

const read = (requests: number) =>
  loadWithFile(`limits: [{ name: a, match: GET /a, requests: ${requests}, window: 1m }]`, {}).settings

test('a worker that has changed its table has the hash of a gateway that began with it', () => {
  const [before, next] = [read(5), read(6)]
  const rules = reviseRules(before.rules, next.rules, ['a'], 7)
  expect(rules).not.toEqual(next.rules)
  expect(hashTable({ ...next, rules })).toBe(hashTable(next))
  expect(hashTable(next)).not.toBe(hashTable(before))
})
