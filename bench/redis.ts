import { Redis } from 'ioredis'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { pino } from 'pino'
import type * as connecting from '../proxy/limits/store/redis/connecting/connection.ts'
import type * as limiting from '../proxy/limits/store/create-limiter.ts'
import type * as keys from '../proxy/limits/store/redis/keys.ts'
import type * as commands from '../proxy/limits/store/redis/scripts/command.ts'
import type * as urls from '../proxy/limits/store/redis/connecting/url.ts'
import type { Charge } from '../proxy/limits/limiter.ts'
import type { Policy } from '../proxy/policy.ts'
import { connectBare } from './measure/bare-redis.ts'
import { measureScriptUs } from './measure/busy-script.ts'
import { readCpuUs, startRedis } from './measure/redis-servers.ts'

// The cost of a decision for Redis and the gateway, and its latency, when requests arrive at random:
//
//     npm run bench:redis -- --rates 100,1000,10000,bare-10000,busy,script --seconds 5 --masters 3 --rules 2 --from ../other-checkout
//
// `--masters` uses a cluster of that size. `--from` uses the limiter of another checkout, for comparison: the whole limiter of a gateway,
// including its circuit breakers. With the rate `busy` requests do not arrive at random: 64 per master are always unanswered, as when Redis
// is saturated. The cost of a decision for the busiest node shows how many decisions a second all nodes can handle. With `bare-10000` a
// program without code of Sluice sends `INCR` for each decision over a bare socket: no gateway that sends requests as soon as they arrive
// can cost Redis less. With `script`, commands of one decision and of sixteen follow one another without a pause, on one server. CPU is
// that of Redis's processes, less their idle use, and of the gateway's thread, so that other load on the machine matters little.

const { values } = parseArgs({
  options: {
    rates: { type: 'string', default: '100,1000,10000,bare-10000,busy,script' },
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
const { createSharedLimiter } = await load<typeof limiting>('proxy/limits/store/create-limiter.ts')
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
const nothing = (): void => undefined
const limiter = createSharedLimiter(connection.client, {
  namespace: undefined,
  storeTimeoutMs: 1000,
  storeMaxKeys: 100_000,
  seed: 1,
  now: () => performance.now(),
  log: pino({ enabled: false }),
  telemetry: {
    storeAnswered: nothing,
    storeFailed: () => void (failed += 1),
    breakerChanged: nothing,
    storeEvicted: nothing,
    leaseChanged: nothing,
    observeTable: nothing,
  },
  onForget: nothing,
})
const operators = redis.ports.map((port) => new Redis(port))
async function readCommands(): Promise<number> {
  const texts = await Promise.all(operators.map((operator) => operator.info('commandstats')))
  return sum(texts.map((text) => Number(/cmdstat_evalsha:calls=(\d+)/.exec(text)?.[1] ?? 0)))
}

type Measured = {
  readonly asked: number
  /** Microseconds by node. */
  readonly redisUs: readonly number[]
  /** Microseconds of the deciding thread. */
  readonly gatewayUs: number
  readonly commands: number
  readonly latenciesMs: Float64Array
}

const BUSY = 'busy'
const SCRIPT = 'script'
const BARE = 'bare-'
const UNANSWERED = 64 * Math.max(1, masters)

/** Calls `arrive` for each request, at random times. */
async function letArrive(ratePerSecond: number, arrive: () => void): Promise<void> {
  const arrivals = new Worker(join(import.meta.dirname, 'measure/arrivals.ts'), {
    workerData: { ratePerSecond, seconds },
  })
  await new Promise<void>((done) => {
    arrivals.on('message', (due: number) => {
      if (due === 0) done()
      for (let i = 0; i < due; i++) arrive()
    })
  })
  await arrivals.terminate()
}

/** @param rate requests a second; 0 for none */
async function measure(rate: number | typeof BUSY): Promise<Measured> {
  const latenciesMs: number[] = []
  const commands = await readCommands()
  const beforeUs = redis.pids.map(readCpuUs)
  const threadBefore = process.threadCpuUsage()
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
    await letArrive(rate, () => decided.push(decideNext()))
    await Promise.all(decided)
  }
  const { user, system } = process.threadCpuUsage(threadBefore)
  return {
    asked,
    gatewayUs: user + system,
    redisUs: redis.pids.map((pid, node) => readCpuUs(pid) - (beforeUs[node] ?? 0)),
    commands: (await readCommands()) - commands,
    latenciesMs: Float64Array.from(latenciesMs).sort(),
  }
}

/** Sends `INCR` in place of decisions, with all commands of a turn of the event loop in one write. */
async function measureBare(rate: number): Promise<void> {
  const [port] = redis.ports
  const [pid] = redis.pids
  if (masters > 0 || port === undefined || pid === undefined) return
  const bare = await connectBare(port)
  const [redisUs, thread] = [readCpuUs(pid), process.threadCpuUsage()]
  let [asked, writes, due] = [0, 0, 0]
  const answers: Promise<void>[] = []
  await letArrive(rate, () => {
    asked += 1
    if (++due > 1) return
    setImmediate(() => {
      answers.push(bare.increment(due))
      writes += 1
      due = 0
    })
  })
  await new Promise(setImmediate)
  await Promise.all(answers)
  bare.close()
  const { user, system } = process.threadCpuUsage(thread)
  console.log(
    `${rate} a second, INCR alone: ${((readCpuUs(pid) - redisUs - (idle.redisUs[0] ?? 0)) / asked).toFixed(2)} µs of Redis each, ` +
      `${((user + system) / asked).toFixed(2)} of the program, ${(asked / writes).toFixed(1)} in a write`,
  )
}

async function measureScript(): Promise<void> {
  const [operator] = operators
  const [pid] = redis.pids
  if (masters > 0 || !operator || pid === undefined) return
  const modules = {
    keys: await load<typeof keys>('proxy/limits/store/redis/keys.ts'),
    commands: await load<typeof commands>('proxy/limits/store/redis/scripts/command.ts'),
  }
  const measureIn = (decisionsInCommand: number): Promise<number> =>
    measureScriptUs({ redis: operator, pid, seconds, decisionsInCommand, chargesOf, ...modules })
  const [alone, sixteens] = [await measureIn(1), await measureIn(16)]
  console.log(
    `without a pause: ${alone.toFixed(2)} µs of Redis a decision alone in its command, ${sixteens.toFixed(2)} in sixteens`,
  )
}

for (let request = 0; request < 2_000; request += 20)
  await Promise.all(
    Array.from({ length: 20 }, (_, i) => Promise.resolve(limiter.decide(chargesOf(request + i)))),
  )
const idle = await measure(0)
for (const text of values.rates.split(',')) {
  if (text === SCRIPT) {
    await measureScript()
    continue
  }
  if (text.startsWith(BARE)) {
    await measureBare(Number(text.slice(BARE.length)))
    continue
  }
  const rate = text === BUSY ? BUSY : Number(text)
  const { asked, redisUs, gatewayUs, commands, latenciesMs } = await measure(rate)
  const at = (share: number): string => (latenciesMs[Math.floor(latenciesMs.length * share)] ?? 0).toFixed(2)
  const usADecision = redisUs.map((us, node) => (us - (idle.redisUs[node] ?? 0)) / asked)
  const busiestUs = Math.max(...usADecision)
  console.log(
    `${rate === BUSY ? `${UNANSWERED} at a time` : `${rate} a second`}: ${sum(usADecision).toFixed(2)} µs of Redis a decision` +
      (masters > 0 ? `, ${busiestUs.toFixed(2)} of its busiest node` : '') +
      `, ${(gatewayUs / asked).toFixed(2)} of the gateway, ${(asked / commands).toFixed(1)} decisions a command, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ${failed} failed` +
      (rate === BUSY
        ? `; ${Math.round(1000 / busiestUs)},000 decisions a second with a core for each node`
        : ''),
  )
}
limiter.close()
connection.close()
for (const operator of operators) operator.disconnect()
await redis.stop()
