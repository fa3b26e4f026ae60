import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ClientEntries } from '../../../../proxy/limits/clients/client-entries.ts'
import {
  idOf,
  MAX_BANS_PER_SITE,
  MAX_RULE_BANS,
  type Ban,
  type EntryId,
} from '../../../../proxy/limits/clients/client-entry.ts'
import { createMemoryEntryStore, type EntryStore } from '../../../../proxy/limits/clients/entry-store.ts'
import { seededRandom } from '../../../support/random/seeded-random.ts'
import { testSeed } from '../../../support/random/seed.ts'

const hour = 3_600_000
/** More than fit into the table. */
const NETWORKS = 10_000
const BANS = 1.5 * MAX_RULE_BANS

type Table = {
  readonly entries: ClientEntries
  readonly store: EntryStore
  readonly clock: { ms: number }
  readonly gone: Set<EntryId>
}

function createTable(): Table {
  const clock = { ms: 1_000 }
  const entries = new ClientEntries(() => clock.ms)
  const gone = new Set<EntryId>()
  const store = createMemoryEntryStore(entries, (id, entry) => {
    if (!entry) gone.add(id)
  })
  return { entries, store, clock, gone }
}

function banOf(partitionKey: string, by: Ban['by'] = 'rule'): Ban {
  return { kind: 'ban', partitionKey, by }
}

/** The /64 network with this number, in the site with that number. */
function networkOf(site: number, network: number): string {
  return `2001:db8:${site.toString(16)}:${network.toString(16)}::/64`
}

function hasBan({ entries }: Table, key: string): boolean {
  return entries.findAddressBan(key) !== undefined
}

test('a client with a /48 keeps nobody else from being banned, and each of its networks is banned at first', async () => {
  const table = createTable()
  expect(await table.store.extend(banOf('192.0.2.1'), hour)).toBe('done')
  const missed: number[] = []
  for (let network = 0; network < NETWORKS; network++) {
    table.clock.ms += 1
    const outcome = await table.store.extend(banOf(networkOf(1, network)), hour)
    if (outcome !== 'done' || !hasBan(table, networkOf(1, network))) missed.push(network)
  }
  expect(missed).toEqual([])
  expect(hasBan(table, '192.0.2.1')).toBe(true)
  expect(table.entries.list('ban')).toHaveLength(MAX_BANS_PER_SITE + 1)
  // The bans that end last are kept.
  expect(hasBan(table, networkOf(1, NETWORKS - MAX_BANS_PER_SITE))).toBe(true)
  expect(hasBan(table, networkOf(1, NETWORKS - MAX_BANS_PER_SITE - 1))).toBe(false)
  expect(await table.store.extend(banOf('192.0.2.2'), hour)).toBe('done')
  expect(hasBan(table, '192.0.2.2')).toBe(true)
})

test.each([
  ['IPv4 addresses', (i: number) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`],
  ['networks of many sites', (i: number) => networkOf(i, 0)],
  ['values that clients make up', (i: number) => `h:${i}`],
])(
  'a table full of %s takes further bans: it evicts the ban that ends soonest, and none of an operator',
  async (_, keyOf) => {
    const table = createTable()
    await table.store.put(banOf('192.0.2.1', 'operator'), 1_000)
    await table.store.extend(banOf('192.0.2.2'), 2 * hour)
    const missed: number[] = []
    for (let i = 0; i < BANS; i++) {
      table.clock.ms += 0.01
      const outcome = await table.store.extend(banOf(keyOf(i)), hour)
      if (outcome !== 'done' || table.entries.leftMs(idOf(banOf(keyOf(i)))) === 0) missed.push(i)
    }
    expect(missed).toEqual([])
    expect(hasBan(table, '192.0.2.1')).toBe(true)
    expect(hasBan(table, '192.0.2.2')).toBe(true)
    const { size, evictions } = table.entries.readBanUse()
    expect(size).toBeGreaterThan(0.98 * MAX_RULE_BANS)
    expect(size).toBeLessThanOrEqual(MAX_RULE_BANS)
    expect(evictions).toBe(BANS + 2 - size)
    expect(table.gone.size).toBe(evictions)
  },
)

test('bans of keys that are made up under some rules end none of a rule that has fewer', async () => {
  const random = seededRandom(testSeed())
  const draw = (from: number, to: number): number => from + Math.floor(random() * (to - from))
  for (let round = 0; round < 2; round++) {
    const table = createTable()
    const scopeOf = (i: number): Pick<Ban, 'policy' | 'parts'> =>
      draw(0, 2) === 0 ? { policy: `rule-${i}` } : { parts: `header:x-${i}` }
    const flooded = Array.from({ length: draw(1, 5) }, (_, i) => scopeOf(i))
    const others = Array.from({ length: draw(1, 40) }, (_, i) => scopeOf(100 + i))
    const extend = (scope: Pick<Ban, 'policy' | 'parts'>, key: string, forMs: number) =>
      table.store.extend({ ...banOf(key), ...scope }, forMs)
    const kept: Ban[] = others.flatMap((scope, i) =>
      Array.from({ length: draw(1, 40) }, (_, client) => ({ ...banOf(`h:${i}:${client}`), ...scope })),
    )
    // These bans end sooner than the attacker's.
    for (const ban of kept) await table.store.extend(ban, hour / 2)
    for (let i = 0; i < BANS; i++)
      await extend(flooded[draw(0, flooded.length)] ?? {}, `h:made-up:${i}`, hour)
    expect(table.gone.size).toBeGreaterThan(BANS - MAX_RULE_BANS)
    expect(kept.filter((ban) => table.entries.leftMs(idOf(ban)) === 0)).toEqual([])
  }
})

test('if each of thousands of rules has a ban, a further ban evicts no more than a hundredth of them', async () => {
  const table = createTable()
  const bans = 1.1 * MAX_RULE_BANS
  for (let i = 0; i < bans; i++) {
    table.gone.clear()
    expect(await table.store.extend({ ...banOf('h:1'), policy: `rule-${i}` }, hour + i)).toBe('done')
    expect(table.gone.size).toBeLessThanOrEqual(MAX_RULE_BANS / 100)
  }
  expect(table.entries.readBanUse().size).toBeGreaterThan(0.98 * MAX_RULE_BANS)
  // The bans that would end first have been evicted.
  expect(table.entries.leftMs(idOf({ ...banOf('h:1'), policy: `rule-${bans - MAX_RULE_BANS - 1}` }))).toBe(0)
})

test("in any sequence of bans, a new ban holds, operators' bans stay, and no evicted ban ends later than one that stays", async () => {
  const keys = fc.oneof(
    { weight: 7, arbitrary: fc.nat(2_000).map((network) => networkOf(1, network)) },
    fc.record({ site: fc.nat(2), network: fc.nat(50) }).map(({ site, network }) => networkOf(site, network)),
    fc.nat(50).map((last) => `192.0.2.${last}`),
    fc.nat(50).map((n) => `h:${n}`),
    fc.nat(5).map((n) => `2001:db8:${n}::/48`),
  )
  let evictions = 0
  const step = fc.record({
    key: keys,
    by: fc.constantFrom<Ban['by'][]>('rule', 'rule', 'rule', 'rule', 'operator'),
    forMs: fc.integer({ min: 1, max: 100_000 }),
    afterMs: fc.nat(5),
    lift: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 700, maxLength: 1_200 }), async (steps) => {
      const table = createTable()
      const ends = new Map<EntryId, { endsAtMs: number; by: Ban['by'] }>()
      for (const { key, by, forMs, afterMs, lift } of steps) {
        table.clock.ms += afterMs
        const ban = banOf(key, by)
        const id = idOf(ban)
        if (lift) {
          await table.store.remove(id)
          ends.delete(id)
          continue
        }
        table.gone.clear()
        const before = table.entries.leftMs(id)
        expect(await (by === 'rule' ? table.store.extend(ban, forMs) : table.store.put(ban, forMs))).toBe(
          'done',
        )
        const isKept = by === 'rule' && before >= forMs
        if (!isKept) ends.set(id, { endsAtMs: table.clock.ms + forMs, by })
        expect(table.entries.leftMs(id)).toBe(isKept ? before : forMs)
        evictions += table.gone.size
        for (const gone of table.gone) {
          const site = gone.split(':', 3).join(':')
          const ended = ends.get(gone)
          ends.delete(gone)
          expect(ended?.by).toBe('rule')
          for (const [other, { endsAtMs, by: whose }] of ends) {
            if (other === id || whose !== 'rule' || other.endsWith('/48') || !other.startsWith(`${site}:`))
              continue
            if (endsAtMs > table.clock.ms && endsAtMs < (ended?.endsAtMs ?? 0)) expect(gone).toBe(other)
          }
        }
      }
      const nowMs = table.clock.ms
      for (const [id, { endsAtMs }] of ends)
        if (endsAtMs > nowMs) expect(table.entries.leftMs(id)).toBe(endsAtMs - nowMs)
    }),
    { numRuns: 20 },
  )
  expect(evictions).toBeGreaterThan(0)
})
