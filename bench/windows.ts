import { Redis } from 'ioredis'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Charge } from '../proxy/limits/limiter.ts'
import { MemoryLimiter } from '../proxy/limits/store/memory/limiter.ts'
import { describePolicy, keyOf, keyPrefixOf } from '../proxy/limits/store/redis/keys.ts'
import type { Policy } from '../proxy/policy.ts'
import { freePort } from '../test/support/network/ports.ts'
import { countInRedis } from '../test/support/redis/count-in-redis.ts'
import { startServer } from './measure/processes.ts'
import { readCpuUs } from './measure/redis-servers.ts'

// The cost of a decision under a fixed window and under sliding windows, and the memory that Redis needs for a client:
//
//     npm run bench:windows
//
// Decisions are requested 32 at a time, at an even pace. Under the sliding windows every client has used up its quota, and one request
// leaves the window before each new one: the most work possible. The cheapest of the measured seconds counts, because others may use the
// machine.

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '5' } } })
const batch = 32
/** Longer than Redis takes to store the requests that the clients have already used. */
const prefillMs = 4_000
const ratePerSecond = 12_800

type Subject = { readonly policy: Policy; readonly clients: number }

/** Makes as many clients as use up their quotas at this rate. */
function subject(algorithm: Policy['algorithm'], quota: number, windowMs: number): Subject {
  const policy: Policy = {
    name: 'bench',
    quota,
    windowMs,
    algorithm,
    mode: 'enforce',
    onStoreError: 'closed',
    partition: [{ kind: 'ip' }],
  }
  return { policy, clients: Math.round((ratePerSecond * windowMs) / 1000 / quota) }
}

const subjects = [
  subject('fixed', 1_000, 200_000),
  subject('sliding', 30, 6_000),
  subject('sliding', 10_000, 50_000),
]

function chargeOf({ policy, clients }: Subject, request: number): Charge[] {
  const client = request % clients
  return [{ policy, partitionKey: `198.51.${client >> 8}.${client & 255}` }]
}

const port = await freePort()
const server = await startServer(
  { program: 'redis-server', args: ['--port', String(port), '--save', '', '--bind', '127.0.0.1'] },
  port,
)
const redis = new Redis(port)
const keyPrefix = keyPrefixOf(undefined)

/** Uses up each client's quota, so that one request leaves the window half a step before each new request. */
async function useUp(measured: Subject, startUs: number): Promise<void> {
  const { policy, clients } = measured
  const stepUs = (clients / ratePerSecond) * 1_000_000
  for (let client = 0; client < clients; client++) {
    const [charge] = chargeOf(measured, client)
    if (!charge) continue
    const key = keyOf(describePolicy(policy, keyPrefix), charge.partitionKey)
    const leavesUs = startUs + (client * stepUs) / clients - stepUs / 2
    const times = Array.from({ length: policy.quota }, (_, i) =>
      Math.round(leavesUs + i * stepUs - policy.windowMs * 1000),
    )
    await redis.rpush(key, ...times)
    await redis.pexpire(key, 2 * policy.windowMs)
  }
}

async function measureRedis(measured: Subject): Promise<string> {
  await redis.flushall()
  const startMs = performance.now() + prefillMs
  if (measured.policy.algorithm === 'sliding') await useUp(measured, (Date.now() + prefillMs) * 1000)
  const [first] = chargeOf(measured, 0)
  let refused = 0
  const limiter = countInRedis(redis, {
    keyPrefix,
    timeoutMs: 1000,
    failed: (reason) => console.error(reason),
    refused: () => void (refused += 1),
  })
  await sleep(startMs - performance.now())
  const slices = Number(values.seconds)
  const inSlice = Math.round(ratePerSecond / batch) * batch
  let least = { redisUs: Infinity, gatewayUs: Infinity }
  for (let slice = 0; slice < slices; slice++) {
    const before = { redisUs: readCpuUs(server.pid), gatewayUs: readCpuUs('self') }
    for (let asked = slice * inSlice; asked < (slice + 1) * inSlice; asked += batch) {
      await sleep(Math.max(0, startMs + (asked / ratePerSecond) * 1000 - performance.now()))
      await Promise.all(
        Array.from({ length: batch }, (_, i) => limiter.decide(chargeOf(measured, asked + i))),
      )
    }
    least = {
      redisUs: Math.min(least.redisUs, (readCpuUs(server.pid) - before.redisUs) / inSlice),
      gatewayUs: Math.min(least.gatewayUs, (readCpuUs('self') - before.gatewayUs) / inSlice),
    }
  }
  const key = first ? keyOf(describePolicy(measured.policy, keyPrefix), first.partitionKey) : ''
  const bytes = await redis.memory('USAGE', key)
  const share = ((100 * refused) / (slices * inSlice)).toFixed(0)
  return `Redis ${least.redisUs.toFixed(1)} µs, gateway ${least.gatewayUs.toFixed(1)} µs a decision, ${bytes} bytes a client, ${share} % refused`
}

/** Measures the same with embedded counters, on a clock that advances by the time for one request at each request. */
function measureEmbedded(measured: Subject): string {
  let nowMs = 0
  const limiter = new MemoryLimiter({ maxKeys: 100_000, seed: 1, now: () => nowMs })
  const ask = (from: number, to: number): void => {
    for (let request = from; request < to; request++) {
      nowMs += 1000 / ratePerSecond
      limiter.decide(chargeOf(measured, request))
    }
  }
  const warmup = measured.policy.quota * measured.clients
  ask(0, warmup)
  let minUs = Infinity
  for (let slice = 0; slice < 10; slice++) {
    const startUs = readCpuUs('self')
    ask(warmup + slice * 100_000, warmup + (slice + 1) * 100_000)
    minUs = Math.min(minUs, (readCpuUs('self') - startUs) / 100_000)
  }
  return `embedded ${minUs.toFixed(2)} µs a decision`
}

for (const measured of subjects) {
  const { algorithm, quota } = measured.policy
  console.log(`${algorithm} ${quota}: ${await measureRedis(measured)}; ${measureEmbedded(measured)}`)
}
redis.disconnect()
await server.stop()
