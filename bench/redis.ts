import { Redis } from 'ioredis'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { pino } from 'pino'
import type * as connecting from '../proxy/limits/store/redis/connecting/connection.ts'
import type * as limiting from '../proxy/limits/store/redis/limiter.ts'
import type * as urls from '../proxy/limits/store/redis/connecting/url.ts'
import type { Charge } from '../proxy/limits/limiter.ts'
import type { Policy } from '../proxy/policy.ts'
import { readCpuUs, startRedis } from './measure/redis-servers.ts'

// What a decision costs Redis and its gateway, and how long it takes, when requests arrive at random:
//
//     npm run bench:redis -- --rates 100,1000,10000,busy --seconds 5 --masters 3 --rules 2 --from ../other-checkout
//
// With --masters it is a cluster of so many; with --from the limiter is that of another checkout, to compare. With the rate `busy`
// requests do not arrive at random: 64 for each master are always unanswered, as where Redis has all it can do. What a decision
// costs the busiest node says how many decisions a second all of them carry. CPU is that of the processes, less what they use when
// nothing is asked, so that others on the machine matter little.

const { values } = parseArgs({
  options: {
    rates: { type: 'string', default: '100,1000,10000,busy' },
    seconds: { type: 'string', default: '5' },
    masters: { type: 'string', default: '0' },
    rules: { type: 'string', default: '1' },
    clients: { type: 'string', default: '5000' },
    from: { type: 'string', default: join(import.meta.dirname, '..') },
  },
})
const seconds = Number(values.seconds)
const masters = Number(values.masters)
const clients = Number(values.clients)

async function load<Module>(path: string): Promise<Module> {
  return (await import(pathToFileURL(resolve(values.from, path)).href)) as Module
}
const { createRedisLimiter } = await load<typeof limiting>('proxy/limits/store/redis/limiter.ts')
const { connectRedis } = await load<typeof connecting>('proxy/limits/store/redis/connecting/connection.ts')
const { parseRedisUrl } = await load<typeof urls>('proxy/limits/store/redis/connecting/url.ts')

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)

const policies = Array.from({ length: Number(values.rules) }, (_, rule): Policy => ({
  name: `bench-${rule}`,
  quota: 1_000_000,
  windowMs: 60_000 * (rule + 1),
  algorithm: 'fixed',
  mode: 'enforce',
  onStoreError: 'closed',
  partition: [{ kind: 'ip' }],
}))

function chargesOf(request: number): Charge[] {
  const client = request % clients
  return policies.map((policy) => ({ policy, partitionKey: `198.51.${client >> 8}.${client & 255}` }))
}

const redis = await startRedis(masters)
const connection = connectRedis(parseRedisUrl(redis.url), pino({ enabled: false }))
await connection.connected(5_000)
let failed = 0
const limiter = createRedisLimiter({
  redis: connection.client,
  keyPrefix: 'sluice:1',
  timeoutMs: 1000,
  now: () => performance.now(),
  hooks: {
    answered: () => undefined,
    failed: () => (failed += 1),
    counterBroken: () => undefined,
    decideWithout: () => ({ outcome: 'unavailable', uncertain: true }),
    refused: () => undefined,
  },
})
const operators = redis.ports.map((port) => new Redis(port))
async function readCommands(): Promise<number> {
  const texts = await Promise.all(operators.map((operator) => operator.info('commandstats')))
  return sum(texts.map((text) => Number(/cmdstat_evalsha:calls=(\d+)/.exec(text)?.[1] ?? 0)))
}

type Measured = {
  readonly asked: number
  /** Of each node. */
  readonly redisUs: readonly number[]
  readonly commands: number
  readonly latenciesMs: Float64Array
}

const BUSY = 'busy'
const UNANSWERED = 64 * Math.max(1, masters)

/** @param rate a second; 0 is nobody */
async function measure(rate: number | typeof BUSY): Promise<Measured> {
  const latenciesMs: number[] = []
  const commands = await readCommands()
  const beforeUs = redis.pids.map(readCpuUs)
  let asked = 0
  async function decideNext(): Promise<void> {
    const startMs = performance.now()
    await limiter.decide(chargesOf(asked++))
    latenciesMs.push(performance.now() - startMs)
  }
  if (rate === 0) await new Promise((done) => setTimeout(done, seconds * 1000))
  else if (rate === BUSY) {
    const endMs = performance.now() + seconds * 1000
    const decideOn = async (): Promise<void> => {
      while (performance.now() < endMs) await decideNext()
    }
    await Promise.all(Array.from({ length: UNANSWERED }, decideOn))
  } else {
    const decided: Promise<void>[] = []
    const arrivals = new Worker(join(import.meta.dirname, 'measure/arrivals.ts'), {
      workerData: { ratePerSecond: rate, seconds },
    })
    await new Promise<void>((done) => {
      arrivals.on('message', (due: number) => {
        if (due === 0) done()
        for (let i = 0; i < due; i++) decided.push(decideNext())
      })
    })
    await Promise.all(decided)
    await arrivals.terminate()
  }
  return {
    asked,
    redisUs: redis.pids.map((pid, node) => readCpuUs(pid) - (beforeUs[node] ?? 0)),
    commands: (await readCommands()) - commands,
    latenciesMs: Float64Array.from(latenciesMs).sort(),
  }
}

for (let request = 0; request < 2_000; request += 20)
  await Promise.all(Array.from({ length: 20 }, (_, i) => limiter.decide(chargesOf(request + i))))
const idle = await measure(0)
for (const rate of values.rates.split(',').map((text) => (text === BUSY ? BUSY : Number(text)))) {
  const { asked, redisUs, commands, latenciesMs } = await measure(rate)
  const at = (share: number): string => (latenciesMs[Math.floor(latenciesMs.length * share)] ?? 0).toFixed(2)
  const usADecision = redisUs.map((us, node) => (us - (idle.redisUs[node] ?? 0)) / asked)
  const busiestUs = Math.max(...usADecision)
  console.log(
    `${rate === BUSY ? `${UNANSWERED} at a time` : `${rate} a second`}: ${sum(usADecision).toFixed(2)} µs of Redis a decision` +
      (masters > 0 ? `, ${busiestUs.toFixed(2)} of its busiest node` : '') +
      `, ${(asked / commands).toFixed(1)} decisions a command, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${failed} failed` +
      (rate === BUSY
        ? `; ${Math.round(1000 / busiestUs)},000 decisions a second with a core for each node`
        : ''),
  )
}
limiter.close()
connection.close()
for (const operator of operators) operator.disconnect()
await redis.stop()
