import { Redis } from 'ioredis'
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Policy } from '../proxy/policy.ts'
import { atEnd } from '../test/support/run/at-end.ts'
import { readCpuUs, startRedis } from './measure/redis-servers.ts'
import type { HotKeyLoad, HotKeySeen } from './measure/hot-key-gateway.ts'

// Measures what `lease` saves when all requests have one key: the commands to Redis, and the CPU of Redis and of the gateways, per
// decision. If the rate exceeds the quota, it also prints how many requests a window admitted beyond the quota, and how many were refused
// in windows whose quota was not used up at the end:
//
//     npm run bench:leases -- --rate 130000 --quota 100000 --window 1 --gateways 8 --seconds 5 --leases none,auto
//
// Each gateway is a process with the limiter of a real one; no request arrives over HTTP. Requests are evenly spaced. If the machine cannot
// send that many, the output shows how many it has sent.

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '10000' },
    quota: { type: 'string', default: '1000000000' },
    window: { type: 'string', default: '3600' },
    gateways: { type: 'string', default: '8' },
    seconds: { type: 'string', default: '5' },
    leases: { type: 'string', default: 'none,auto' },
  },
})
const rate = Number(values.rate)
const quota = Number(values.quota)
const gateways = Number(values.gateways)
const seconds = Number(values.seconds)

type Measured = {
  readonly perSecond: number
  readonly failed: number
  /** Per decision. */
  readonly commands: number
  readonly redisUs: number
  readonly gatewayUs: number
  /** The counts of each window that was observed from its beginning to its end. */
  readonly whole: readonly { readonly admitted: number; readonly refused: number }[]
}

async function measure(lease: Policy['lease']): Promise<Measured> {
  const redis = await startRedis(0)
  const operator = new Redis(redis.url)
  const load: HotKeyLoad = {
    url: redis.url,
    requestsPerSecond: rate / gateways,
    seconds,
    quota,
    windowMs: Number(values.window) * 1000,
    lease,
  }
  const children = await Promise.all(Array.from({ length: gateways }, () => startGateway(load)))
  const before = [readCpuUs(redis.pids[0] ?? 0), await readCommands(operator)] as const
  const ends = watchWindows(operator)
  const seen = await Promise.all(
    children.map(async (child) => {
      const answer = once(child, 'message') as Promise<[HotKeySeen]>
      child.send('begin')
      return (await answer)[0]
    }),
  )
  const after = [readCpuUs(redis.pids[0] ?? 0), await readCommands(operator)] as const
  const windowEnds = ends.stop()
  operator.disconnect()
  await redis.stop()
  const decisions = sum(seen.map((gateway) => gateway.decisions))
  return {
    perSecond: sum(seen.map((gateway) => (1000 * gateway.decisions) / gateway.elapsedMs)),
    failed: sum(seen.map((gateway) => gateway.failed)),
    commands: (after[1] - before[1]) / decisions,
    redisUs: (after[0] - before[0]) / decisions,
    gatewayUs: sum(seen.map((gateway) => gateway.cpuUs)) / decisions,
    whole: countWindows(seen, windowEnds, load.windowMs),
  }
}

async function startGateway(load: HotKeyLoad): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'measure/hot-key-gateway.ts'), [JSON.stringify(load)])
  atEnd(() => child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

/** Polls Redis for the ends of the counter's windows, by the clock of this machine. */
function watchWindows(operator: Redis): { stop(): readonly number[] } {
  const ends = new Set<number>()
  let key: string | undefined
  const timer = setInterval(() => {
    void look()
  }, 50)
  async function look(): Promise<void> {
    key ??= (await operator.keys('*:hot:*')).find((name) => !name.endsWith(':leased'))
    const endsAtMs = key === undefined ? 0 : Number(await operator.call('PEXPIRETIME', key))
    if (endsAtMs > 0) ends.add(endsAtMs)
  }
  return {
    stop() {
      clearInterval(timer)
      return [...ends].sort((one, other) => one - other)
    },
  }
}

/**
 * The requests that all gateways have seen in each window. Leaves out the first and the last window, and any window that follows one whose
 * end was not seen. A gateway knows the end of a window except for the time between its question and Redis's decision, which is less than a
 * window.
 */
function countWindows(
  seen: readonly HotKeySeen[],
  ends: readonly number[],
  windowMs: number,
): Measured['whole'] {
  const counted = ends.map(() => ({ admitted: 0, refused: 0 }))
  for (const [endsFromMs, admitted, refused] of seen.flatMap(({ windows }) => windows)) {
    const window = counted[ends.findIndex((end) => end >= endsFromMs)]
    if (!window) continue
    window.admitted += admitted
    window.refused += refused
  }
  const isWhole = (at: number): boolean =>
    (ends[at] ?? Infinity) - (ends[at - 1] ?? -Infinity) < 1.5 * windowMs
  return counted.filter((_, at) => at < counted.length - 1 && isWhole(at))
}

async function readCommands(operator: Redis): Promise<number> {
  const text = await operator.info('commandstats')
  return sum(Array.from(text.matchAll(/^cmdstat_evalsha?:calls=(\d+)/gm), ([, calls]) => Number(calls)))
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}

const titles = [
  'lease',
  'decisions a second',
  'commands each',
  'Redis, µs each',
  'gateways, µs each',
  'windows',
  'over the quota',
  'refused early, at most',
  'failed',
]
console.log(`| ${titles.join(' | ')} |`)
console.log(`| ${titles.map((title) => '-'.repeat(title.length)).join(' | ')} |`)
for (const name of values.leases.split(',')) {
  const lease = name === 'none' ? undefined : name === 'auto' ? name : Number(name)
  const { perSecond, failed, commands, redisUs, gatewayUs, whole } = await measure(lease)
  const over = sum(whole.map(({ admitted }) => Math.max(0, admitted - quota)))
  const early = whole.map(({ admitted, refused }) => Math.min(refused, Math.max(0, quota - admitted)) / quota)
  const figures = [
    Math.round(perSecond),
    commands.toFixed(4),
    redisUs.toFixed(2),
    gatewayUs.toFixed(2),
    whole.length,
    over,
    `${(100 * Math.max(0, ...early)).toFixed(2)} %`,
    failed,
  ]
  console.log(`| ${[name, ...figures].join(' | ')} |`)
}
