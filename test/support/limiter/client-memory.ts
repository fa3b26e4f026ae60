import { ClientEntries } from '../../../proxy/limits/clients/client-entries.ts'
import { MAX_ENTRIES, readEntry, type ClientEntry } from '../../../proxy/limits/clients/client-entry.ts'
import { createInFlightCounts } from '../../../proxy/limits/algorithms/concurrency/counts.ts'
import { collectGarbage } from '../../../shared/v8-gc.ts'
import { chargeAll, makePolicy } from './charges.ts'

/*
 * Measures how much of the heap a ban, an override and a request in flight of one more client take, in a process of its own. Prints one
 * JSON object, in bytes. Fills many tables of bans and overrides, as each has ten thousand entries at most.
 */

const tables = 20

function usedBytes(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

/** The key of a secret, as a slice of a longer string. */
function keyOf(index: number): string {
  return `h:${String(index).padStart(22, 'Q')}`
}

/** Measures entries in the form in which they are read from Redis. */
function bytesPerEntry(entryAt: (index: number) => ClientEntry): number {
  const filled = Array.from({ length: tables }, () => new ClientEntries(() => performance.now()))
  const before = usedBytes()
  for (const [table, entries] of filled.entries())
    for (let at = 0; at < MAX_ENTRIES; at++) {
      const entry = readEntry(JSON.parse(JSON.stringify(entryAt(table * MAX_ENTRIES + at))))
      if (!entry || !entries.set(entry, 3_600_000)) throw new RangeError('not kept')
    }
  const bytes = (usedBytes() - before) / (tables * MAX_ENTRIES)
  if (filled.some((entries) => entries.all().length !== MAX_ENTRIES)) throw new RangeError('not kept')
  return bytes
}

function bytesPerRequestInFlight(): number {
  const counts = createInFlightCounts(200_000)
  const [policy] = [makePolicy('exports', 2, 0)]
  const before = usedBytes()
  for (let at = 0; at < 200_000; at++)
    chargeAll(keyOf(at), [policy]).forEach((charge) => counts.add(0, charge))
  const size = counts.readUse()['in-flight']?.size
  const bytes = (usedBytes() - before) / 200_000
  if (size !== 200_000) throw new RangeError('not counted')
  return bytes
}

const banned = (index: number): ClientEntry => ({
  kind: 'ban',
  policy: 'login',
  partitionKey: keyOf(index),
  by: 'rule',
  times: 1 + (index % 4),
})
const bannedEverywhere = (index: number): ClientEntry => ({
  kind: 'ban',
  parts: 'header%3Ax-api-key',
  partitionKey: keyOf(index),
  by: 'operator',
})
const overridden = (index: number): ClientEntry => ({
  kind: 'override',
  policy: 'login',
  partitionKey: keyOf(index),
  requests: 1000 + index,
})

console.log(
  JSON.stringify({
    ban: bytesPerEntry(banned),
    banEverywhere: bytesPerEntry(bannedEverywhere),
    override: bytesPerEntry(overridden),
    requestInFlight: bytesPerRequestInFlight(),
  }),
)
