import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import type { Relay, RelayFault } from '../support/network/relay.ts'
import type { BreakableRedis } from './breakable-redis.ts'
import type { Stage } from './stage.ts'

/** A fault that lasts for a while: in the network before one replica, or in Redis, which all replicas use. */
export type Fault = {
  readonly site: 'redis' | number
  readonly kind: string
  /** Milliseconds since the history began. */
  readonly startMs: number
  readonly durationMs: number
}

const slow: RelayFault = { kind: 'delay', delayMs: 30 }
const slower: RelayFault = { kind: 'delay', delayMs: 150 }
const drop: RelayFault = { kind: 'trickle', bytes: 40, everyMs: 4 }

/** Faults of the network of a replica: how each begins, and how it ends. */
const networkFaults: Readonly<Record<string, RelayFault | 'cut' | 'reset' | 'strand'>> = {
  cut: 'cut',
  reset: 'reset',
  strand: 'strand',
  slow,
  slower,
  trickle: drop,
  pause: { kind: 'pause' },
  'swallow replies': { kind: 'swallow-replies' },
  swallow: { kind: 'swallow' },
  refuse: { kind: 'refuse' },
}

type RedisFault = {
  begin(redis: BreakableRedis): Promise<unknown>
  end(redis: BreakableRedis): Promise<unknown>
}

const asOperator = (
  begin: (redis: Redis) => Promise<unknown>,
  end: (redis: Redis) => Promise<unknown> = () => Promise.resolve(),
): RedisFault => ({ begin: (it) => it.operate(begin), end: (it) => it.operate(end) })

/** What can happen to Redis itself. */
const redisFaults: Readonly<Record<string, RedisFault>> = {
  hang: { begin: (redis) => redis.signal('SIGSTOP'), end: (redis) => redis.signal('SIGCONT') },
  restart: { begin: (redis) => redis.kill(), end: (redis) => redis.restart() },
  'kill clients': asOperator((redis) => redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')),
  full: asOperator(
    (redis) => redis.config('SET', 'maxmemory', '1'),
    (redis) => redis.config('SET', 'maxmemory', '0'),
  ),
  'read only': asOperator(
    (redis) => redis.replicaof('127.0.0.1', '1'),
    (redis) => redis.replicaof('NO', 'ONE'),
  ),
  'no scripts': asOperator(
    (redis) => redis.acl('SETUSER', 'default', '-eval', '-evalsha'),
    (redis) => redis.acl('SETUSER', 'default', '+eval', '+evalsha'),
  ),
  'flushed scripts': asOperator((redis) => redis.script('FLUSH')),
}

/** Redis has a flushed script again as soon as a gateway runs it, so no replica notices. */
const harmless = new Set(['flushed scripts'])

/**
 * Draws one to five random faults. Faults at the same site do not overlap.
 *
 * @param random numbers in [0, 1)
 */
export function drawFaults(random: () => number, replicas: number, withinMs: number): Fault[] {
  const faults: Fault[] = []
  const freeAtMs = new Map<Fault['site'], number>()
  const count = 1 + Math.floor(random() * 5)
  for (let drawn = 0; drawn < count; drawn++) {
    const { site, kind } = drawFault(random, replicas)
    const startMs = Math.max(freeAtMs.get(site) ?? 0, Math.round(random() * withinMs * 0.8))
    const durationMs = Math.round(10 + random() * random() * withinMs)
    if (startMs > withinMs) continue
    faults.push({ site, kind, startMs, durationMs })
    freeAtMs.set(site, startMs + durationMs + 10)
  }
  return faults.toSorted((a, b) => a.startMs - b.startMs)
}

/** Draws a fault and its site: Redis, or one of the relays. */
export function drawFault(random: () => number, relays: number): Pick<Fault, 'site' | 'kind'> {
  const site = random() < 0.4 ? 'redis' : Math.floor(random() * relays)
  const kinds = Object.keys(site === 'redis' ? redisFaults : networkFaults)
  return { site, kind: kinds[Math.floor(random() * kinds.length)] ?? 'cut' }
}

/** Runs each fault at its time. Resolves when all have ended, before everything has recovered. */
export async function runFaults(stage: Stage, faults: readonly Fault[]): Promise<void> {
  const beganAtMs = performance.now()
  const bySite = Map.groupBy(faults, ({ site }) => site)
  const runSite = async (ofSite: readonly Fault[]): Promise<void> => {
    for (const fault of ofSite) {
      await sleep(Math.max(0, beganAtMs + fault.startMs - performance.now()))
      await runFault(stage, fault)
    }
  }
  await Promise.all(Array.from(bySite.values(), runSite))
}

async function runFault(stage: Stage, fault: Fault): Promise<void> {
  const concerned = fault.site === 'redis' ? [...stage.replicas.keys()] : [fault.site]
  const end = harmless.has(fault.kind) ? () => undefined : stage.trouble(concerned)
  try {
    await breakFor(stage, fault)
  } finally {
    end()
  }
}

/** Breaks the fault's site, and repairs it after the fault's duration. */
export async function breakFor(
  { redis, relays }: { readonly redis: BreakableRedis; readonly relays: readonly Relay[] },
  { site, kind, durationMs }: Fault,
): Promise<void> {
  if (site === 'redis') {
    await redisFaults[kind]?.begin(redis)
    await sleep(durationMs)
    await redisFaults[kind]?.end(redis)
    return
  }
  const relay = relays[site]
  const fault = networkFaults[kind]
  if (!relay || !fault) throw new Error(`no fault ${kind} at ${site}`)
  if (typeof fault === 'string') relay[fault]()
  else await relay.set(fault)
  await sleep(durationMs)
  await relay.set({ kind: 'none' })
}

export function tellFaults(faults: readonly Fault[]): string {
  const tell = ({ site, kind, startMs, durationMs }: Fault): string =>
    `${kind} at ${site === 'redis' ? 'Redis' : `replica ${site}`}, ${startMs} to ${startMs + durationMs} ms`
  return faults.map(tell).join('; ')
}
