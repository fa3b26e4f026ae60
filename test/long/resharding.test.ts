import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { watchForBusyMachine } from '../support/load/busy-machine.ts'
import { beginLoad, compareCounts } from '../support/load/limiter-load.ts'
import { chargeAll, makePolicy, newClient } from '../support/limiter/charges.ts'
import { countAllowed, decideAtOnce } from '../support/limiter/decisions.ts'
import type { RunningLimiter } from '../support/limiter/limiters.ts'
import { startRedisCluster, type ClusterNode, type RedisCluster } from '../support/redis/redis-cluster.ts'
import { openLimiter } from '../support/redis/redis-limiters.ts'
import { eventually } from '../support/wait/eventually.ts'

/*
 * Slots move from one node of a cluster to another while requests arrive. The nodes then answer MOVED, ASK and TRYAGAIN, which all mean
 * that nothing was counted. No request fails, and every count stays exact.
 */

const wide = makePolicy('wide', 1_000_000, 600_000)
const narrow = makePolicy('narrow', 40, 600_000)
const sliding = makePolicy('sliding', 1_000, 600_000, { algorithm: 'sliding', mode: 'shadow' })

/** The source is the first of three masters, with a third of the 16,384 slots. */
const SLOTS_OF_SOURCE = 5461

let cluster: RedisCluster
let source: ClusterNode
let target: ClusterNode

beforeAll(async () => {
  cluster = await startRedisCluster(3, 0)
  const [one, other] = cluster.nodes
  if (one && other) [source, target] = [one, other]
})
afterAll(() => cluster.close())

async function startLimiters(): Promise<readonly [RunningLimiter, RunningLimiter]> {
  const open = (): RunningLimiter => openLimiter(cluster.url)
  const started = [open(), open()] as const
  await Promise.all(started.map(({ connection }) => connection.connected(5000)))
  return started
}

/** Announces that a slot is going to move; none of its keys has moved yet. */
async function open(slot: number): Promise<void> {
  await target.operator.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', source.id)
  await source.operator.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', target.id)
}

/** Moves up to `count` of the slot's keys, and resolves with their number. */
async function moveKeys(slot: number, count: number): Promise<number> {
  const keys = await source.operator.cluster('GETKEYSINSLOT', slot, count)
  if (keys.length > 0) await source.operator.migrate('127.0.0.1', target.port, '', 0, 1000, 'KEYS', ...keys)
  return keys.length
}

async function close(slot: number): Promise<void> {
  for (const { operator } of [target, source, ...cluster.nodes])
    await operator.call('CLUSTER', 'SETSLOT', slot, 'NODE', target.id)
}

async function slotOf(client: string): Promise<number> {
  return source.operator.cluster('KEYSLOT', `sluice:1:{${client}}:wide:600000`)
}

/** A client whose slot is on the source. */
async function clientOfSource(): Promise<{ client: string; slot: number }> {
  for (;;) {
    const client = newClient()
    const slot = await slotOf(client)
    if (slot < SLOTS_OF_SOURCE) return { client, slot }
  }
}

describe('a hash slot that is being migrated', () => {
  test.each([
    ['none of its keys has gone', 0],
    ['one has gone', 1],
    ['all have gone', 9],
  ])(
    'a hash slot that is being migrated is counted exactly under several rules at once, when %s',
    async (_, gone) => {
      const both = await startLimiters()
      const { client, slot } = await clientOfSource()
      const charges = chargeAll(client, [wide, narrow, sliding])
      expect(countAllowed(await decideAtOnce(both, 10, charges))).toBe(10)
      await open(slot)
      await moveKeys(slot, gone)
      const decisions = await decideAtOnce(both, 100, charges)
      expect(countAllowed(decisions)).toBe(30)
      while ((await moveKeys(slot, 10)) > 0);
      await close(slot)
      expect(await both[0].decide(chargeAll(client, [wide, sliding]))).toMatchObject({
        states: [{ remaining: wide.quota - 41 }, { remaining: 1_000 - 41 }],
      })
      expect(both.map(({ telemetry }) => telemetry)).toMatchObject([{ failures: 0 }, { failures: 0 }])
    },
  )

  test('a hash slot that is being migrated counts new clients', async () => {
    const both = await startLimiters()
    const { client, slot } = await clientOfSource()
    await open(slot)
    expect(countAllowed(await decideAtOnce(both, 100, chargeAll(client, [wide, narrow])))).toBe(40)
    while ((await moveKeys(slot, 10)) > 0);
    await close(slot)
    expect(await both[1].decide(chargeAll(client, [wide]))).toMatchObject({
      states: [{ remaining: wide.quota - 41 }],
    })
    expect(both.map(({ telemetry }) => telemetry)).toMatchObject([{ failures: 0 }, { failures: 0 }])
  })
})

test('slots are migrated one after another under load', async () => {
  const both = await startLimiters()
  const judge = watchForBusyMachine()
  const load = beginLoad(both, [wide, sliding])
  await sleep(500)
  const slots = new Set<number>()
  for (const client of load.admitted.keys()) {
    const slot = await slotOf(client)
    if (slot < SLOTS_OF_SOURCE) slots.add(slot)
  }
  expect(slots.size).toBeGreaterThan(10)
  for (const slot of slots) {
    await open(slot)
    await eventually('all keys of the slot are moved', async () => (await moveKeys(slot, 1)) <= 0)
    await close(slot)
  }
  await sleep(200)
  await load.stop()
  const openings = both.map(({ telemetry }) => telemetry.breaker.length)
  console.log(
    `${slots.size} slots; the longest wait ${Math.round(load.maxWaitMs)} ms; ` +
      `failures ${both.map(({ telemetry }) => telemetry.failures).join()}, circuit breaker opened ${openings.join()} times`,
  )
  expect(load.unavailable).toBe(0)
  judge('the longest wait', load.maxWaitMs, 500)
  expect(await compareCounts(both[0], load, wide)).toEqual({ lost: 0, surplus: 0 })
})
