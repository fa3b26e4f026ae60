import { setImmediate } from 'node:timers/promises'
import { pino } from 'pino'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Banning, recordRefusal } from '../../../../proxy/limits/clients/banning.ts'
import type { Policy } from '../../../../proxy/policy.ts'
import { chargeAll, makePolicy } from '../../../support/limiter/charges.ts'

const ban = { after: 1, forMs: 60_000, maxMs: 60_000, scope: 'rule' } as const

/** A class, because `Banning` is one. */
class RecordedRefusals {
  readonly told: string[] = []

  refused({ name }: Policy, client: string): void {
    this.told.push(`${name} ${client}`)
  }
}

test('a refusal counts for each client that the rule refused, whatever their quotas, and for no other', () => {
  const login = makePolicy('login', 5, 60_000, { ban })
  const more: Policy = { ...login, quota: 9 }
  const wide = makePolicy('wide', 5, 60_000, { ban })
  const charges = [
    ...chargeAll('one', [wide, more]),
    ...chargeAll('two', [login]),
    ...chargeAll('three', [login]),
  ]
  const states = charges.map(({ policy, partitionKey }) => {
    const exceeded = partitionKey !== 'three' && policy !== wide
    return { policy, exceeded, remaining: 0, resetMs: 500 }
  })
  const banning = new RecordedRefusals()
  recordRefusal(banning, charges, { outcome: 'refused', refusedBy: more, states })
  expect(banning.told).toEqual(['login one', 'login two'])
})

// Under a rule that counts by a header, a client can invent a new value every few requests.
test('100 of a thousand bans in a second are logged, and a line reports the number of the others', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const lines: Record<string, unknown>[] = []
  const write = (text: string): number => lines.push(JSON.parse(text) as Record<string, unknown>)
  let bans = 0
  const login = makePolicy('login', 5, 60_000, { ban, partition: [{ kind: 'header', name: 'x-user' }] })
  const banning = new Banning({
    store: { extend: () => Promise.resolve('done') },
    policies: [login],
    redis: undefined,
    keyPrefix: 'test',
    isAnswering: () => true,
    telemetry: { clientBanned: () => (bans += 1) },
    logAddresses: true,
    now: () => 0,
    log: pino({ base: null, timestamp: false }, { write }),
  })
  for (let client = 0; client < 1000; client++) banning.refused(login, `h:${client}`)
  while (bans < 1000) await setImmediate()
  expect(lines.map(({ msg }) => msg)).toEqual(Array.from({ length: 100 }, () => 'client banned'))
  vi.advanceTimersByTime(1000)
  expect(lines.slice(100)).toEqual([{ level: 30, leftOut: 900, msg: 'ban log lines suppressed' }])
})
