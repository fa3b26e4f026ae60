import { expect, test } from 'vitest'
import { MAX_RULE_BANS, type ClientEntry } from '../../../../proxy/limits/clients/client-entry.ts'
import { PendingBans } from '../../../../proxy/limits/clients/pending-bans.ts'

function banOf(partitionKey: string): ClientEntry {
  return { kind: 'ban', partitionKey, by: 'rule' }
}

async function writeAll(bans: PendingBans): Promise<[key: string, leftMs: number][]> {
  const written: [string, number][] = []
  await bans.writeAll((entry, leftMs) => Promise.resolve(written.push([entry.partitionKey, leftMs])))
  return written
}

test('bans are written for the time that they have left by the given clock, and not once they have ended', async () => {
  let nowMs = 5_000_000
  const bans = new PendingBans(() => nowMs)
  bans.add(banOf('192.0.2.1'), 1_000)
  bans.add(banOf('192.0.2.2'), 60_000)
  nowMs += 1_000
  expect(await writeAll(bans)).toEqual([['192.0.2.2', 59_000]])
  expect(await writeAll(bans)).toEqual([])
})

test('if there are too many bans, the ones that have ended by the given clock are evicted first', async () => {
  let nowMs = 0
  const bans = new PendingBans(() => nowMs)
  bans.add(banOf('oldest'), 60_000)
  for (let i = 1; i < MAX_RULE_BANS; i++) bans.add(banOf(`ended ${i}`), 1_000)
  nowMs = 1_000
  bans.add(banOf('newest'), 60_000)
  expect((await writeAll(bans)).map(([key]) => key)).toEqual(['oldest', 'newest'])
})
