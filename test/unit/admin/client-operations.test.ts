import { expect, test } from 'vitest'
import { createClientOperations } from '../../../proxy/admin/client-operations.ts'
import { partsOf, idOf, type ClientEntry } from '../../../proxy/limits/clients/client-entry.ts'
import { createClientTable } from '../../../proxy/limits/clients/client-table.ts'
import { createMemoryPlans } from '../../../proxy/limits/plans/stored-plans.ts'
import { planKeyName } from '../../../proxy/limits/plans/plan-key-name.ts'
import { loadWithFile } from '../../support/gateway/settings.ts'
import { recordLog } from '../../support/limiter/recordings.ts'

const table = `
limits:
  - { name: pair, match: GET /a, key: [ip, host], requests: 9, window: 1h }
  - { name: mixed, match: GET /b, key: { first: ['header:x-api-key', ip] }, requests: 9, window: 1h }
  - { name: chain, match: GET /c, key: [host, { first: ['header:x-api-key', ip/24/48] }], requests: 9, window: 1h }
  - { name: key, match: GET /d, key: 'header:x-api-key', requests: 9, window: 1h }
  - { name: tenant, match: GET /e, key: ['header:x-tenant', host], requests: 9, window: 1h }
  - { name: address, match: GET /f, requests: 9, window: 1h }
`
const rules = loadWithFile(table).settings.rules.map(({ policy }) => policy)
const hash = `h:${'a'.repeat(22)}`

/** The names that the log and the webhooks give a client of a rule while an operator uses each operation on it. */
async function namesOf(ruleName: string, partitionKey: string, logAddresses: boolean) {
  const { log, lines } = recordLog()
  const webhooks: (string | undefined)[] = []
  const clientTable = createClientTable(
    {
      policies: rules,
      now: () => 0,
      telemetry: { clientBanned: () => undefined, observeTable: () => undefined },
      logAddresses,
      onBan: (_ban, _forMs, client) => void webhooks.push(client),
      log,
    },
    undefined,
  )
  const { entries, plans, reset } = createClientOperations({
    counters: {
      inspect: () => Promise.resolve([]),
      reset: () => Promise.resolve('done'),
      plans: createMemoryPlans(),
    },
    clientTable,
    limited: { list: () => [] },
    onReset: () => undefined,
    logAddresses,
    log,
  })
  const policy = rules.find(({ name }) => name === ruleName)
  if (!policy) throw new RangeError('the table has the rule')
  const parts = partsOf(policy, partitionKey)
  const set: readonly ClientEntry[] = [
    { kind: 'ban', policy: policy.name, partitionKey, by: 'operator' },
    { kind: 'ban', parts, partitionKey, by: 'operator' },
    { kind: 'override', policy: policy.name, partitionKey, requests: 5 },
  ]
  for (const entry of set) {
    await entries.put(entry, 60_000)
    await entries.remove(idOf(entry))
  }
  await plans.set({ partitionKey, keyName: planKeyName(policy) }, 'gold')
  await plans.set({ partitionKey, keyName: planKeyName(policy) }, undefined)
  await reset([{ policy, partitionKey }])
  return { webhooks, lines: lines.map((line) => (line as { readonly client?: unknown }).client) }
}

test.each([
  ['pair', hash, undefined],
  ['chain', hash, undefined],
  ['address', '192.0.2.7', undefined],
  ['mixed', '192.0.2.7', undefined],
  ['mixed', hash, hash],
  ['key', hash, hash],
  ['tenant', hash, hash],
])(
  'without addresses in the log, what an operator does to a client of rule %s, %s, is reported of %s',
  async (rule, key, name) => {
    const repeat = (what: string | undefined) => ({
      webhooks: Array(2).fill(what),
      lines: Array(9).fill(what),
    })
    expect(await namesOf(rule, key, false)).toEqual(repeat(name))
    expect(await namesOf(rule, key, true)).toEqual(repeat(key))
  },
)

test('with LOG_ADDRESSES=0 a client of a removed rule is not named in the log', async () => {
  const gone = { kind: 'ban', policy: 'gone', partitionKey: hash, by: 'operator' } as const
  const { log } = recordLog()
  const webhooks: (string | undefined)[] = []
  const { operations } = createClientTable(
    {
      policies: rules,
      now: () => 0,
      telemetry: { clientBanned: () => undefined, observeTable: () => undefined },
      logAddresses: false,
      onBan: (_ban, _forMs, client) => void webhooks.push(client),
      log,
    },
    undefined,
  )
  await operations.put(gone, 60_000)
  expect(webhooks).toEqual([undefined])
})
