import { writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startRawBackend } from '../support/http/backend.ts'
import { startGateway, type GatewayProcess, type Reply } from '../support/gateway/gateway.ts'
import { startRelay, type Relay } from '../support/network/relay.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { startBreakableRedis, type BreakableRedis } from '../fault/breakable-redis.ts'
import { watchStarvation } from './starvation.ts'

/*
 * Two gateways under load lose Redis for five seconds, in each way in which Redis can be lost. A third gateway with embedded counters shows
 * how long a request takes on this machine at the same time.
 */

const QUOTA = 10
const OUTAGE_MS = 5_000
const STORE_TIMEOUT_MS = 100
const GIVEN_UP = /"msg":"Redis unavailable: circuit breaker open/g
const BACK = /"msg":"Redis available: circuit breaker closed"/g

type Outage = {
  begin(redis: BreakableRedis, relays: readonly Relay[]): Promise<unknown>
  end(redis: BreakableRedis, relays: readonly Relay[]): Promise<unknown>
}

const outages: Readonly<Record<string, Outage>> = {
  'hangs (SIGSTOP)': { begin: (redis) => redis.signal('SIGSTOP'), end: (redis) => redis.signal('SIGCONT') },
  'dies, and comes back empty (SIGKILL)': { begin: (redis) => redis.kill(), end: (redis) => redis.restart() },
  'decides, and its replies are lost': {
    begin: (_, relays) => Promise.all(relays.map((relay) => relay.set({ kind: 'swallow-replies' }))),
    end: (_, relays) => Promise.all(relays.map((relay) => relay.set({ kind: 'none' }))),
  },
  'is behind a black hole': {
    begin: (_, relays) => Promise.all(relays.map((relay) => relay.set({ kind: 'swallow' }))),
    end: (_, relays) => Promise.all(relays.map((relay) => relay.set({ kind: 'none' }))),
  },
}

const limits = ['local', 'closed', 'open'].map(
  (policy) =>
    `  - { name: ${policy}, match: GET /${policy}, requests: ${QUOTA}, window: 10m, onStoreError: ${policy} }`,
)

async function startAll(): Promise<{
  redis: BreakableRedis
  relays: Relay[]
  replicas: [GatewayProcess, GatewayProcess]
  embedded: GatewayProcess
}> {
  const backend = await startRawBackend((socket) => {
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
  })
  const config = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(config, ['limits:', ...limits, ''].join('\n'))
  const env = { CONFIG_FILE: config, UPSTREAM_URL: backend.url, TRUSTED_PROXIES: '127.0.0.1' }
  const redis = await startBreakableRedis()
  const relays = [await startRelay(redis.port), await startRelay(redis.port)]
  const [first, second, embedded] = await Promise.all([
    startGateway({
      ...env,
      STORE_TIMEOUT: `${STORE_TIMEOUT_MS}ms`,
      REDIS_URL: `redis://127.0.0.1:${relays[0]?.port}`,
    }),
    startGateway({
      ...env,
      STORE_TIMEOUT: `${STORE_TIMEOUT_MS}ms`,
      REDIS_URL: `redis://127.0.0.1:${relays[1]?.port}`,
    }),
    startGateway(env),
  ])
  return { redis, relays, replicas: [first, second], embedded }
}

let lastClient = 0
function newAddress(): string {
  lastClient += 1
  return `10.0.${lastClient >> 8}.${lastClient & 255}`
}

const agent = new Agent({ keepAlive: true })

function ask({ port }: GatewayProcess, path: string, client: string): Promise<Reply & { waitedMs: number }> {
  const sentMs = performance.now()
  return new Promise((resolve, reject) => {
    const headers = { 'x-forwarded-for': client }
    const outgoing = request({ agent, host: '127.0.0.1', port, path, headers }, (response) => {
      const waitedMs = performance.now() - sentMs
      let body = ''
      response.setEncoding('latin1').on('data', (text: string) => (body += text))
      response.once('error', reject)
      response.once('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body, waitedMs })
      })
    })
    outgoing.once('error', reject).end()
  })
}

type Answer = {
  readonly gateway: GatewayProcess
  readonly atMs: number
  readonly waitedMs: number
  /** How much of that wait this process and the gateway spent waiting for a processor. */
  readonly starvedMs: number
  /** 0 if there was no response. */
  readonly status: number
}

/** Sends requests steadily to every gateway, each for a new client, until `stop` is called. */
function startLoad(gateways: readonly GatewayProcess[]): { stop(): Promise<Answer[]> } {
  const asked: Promise<Omit<Answer, 'starvedMs'>>[] = []
  const pidOf = (gateway: GatewayProcess): number => gateway.process.child.pid ?? 0
  const starvation = watchStarvation([process.pid, ...gateways.map(pidOf)])
  const timer = setInterval(() => {
    const atMs = performance.now()
    for (const gateway of gateways) {
      const answered = ask(gateway, '/local', newAddress()).catch(() => ({ status: 0, waitedMs: NaN }))
      asked.push(answered.then(({ status, waitedMs }) => ({ gateway, atMs, status, waitedMs })))
    }
  }, 10)
  return {
    async stop() {
      clearInterval(timer)
      const answers = await Promise.all(asked)
      starvation.close()
      return answers.map((answer) => {
        const { gateway, atMs, waitedMs } = answer
        const starved = [process.pid, pidOf(gateway)].map((pid) =>
          starvation.starvedMs(pid, atMs, atMs + waitedMs),
        )
        return { ...answer, starvedMs: starved.reduce((total, ms) => total + ms) }
      })
    },
  }
}

async function statuses(
  gateway: GatewayProcess,
  path: string,
  client: string,
  times: number,
): Promise<number[]> {
  const seen: number[] = []
  for (let sent = 0; sent < times; sent++) seen.push((await ask(gateway, path, client)).status)
  return seen
}

/**
 * Does what `statuses` does, but only for decisions of Redis. On a busy machine, a reply of Redis sometimes takes longer than the gateway
 * waits. The gateway then correctly decides by itself, and this asks again.
 */
async function statusesByRedis(
  gateway: GatewayProcess,
  path: string,
  client: string,
  times: number,
): Promise<number[]> {
  const seen: number[] = []
  while (seen.length < times) {
    const { status, waitedMs } = await ask(gateway, path, client)
    if (waitedMs < STORE_TIMEOUT_MS) seen.push(status)
  }
  return seen
}

function medianWait(answers: readonly Answer[]): number {
  const waits = answers.map(({ waitedMs }) => waitedMs).toSorted((a, b) => a - b)
  return waits[Math.floor(waits.length / 2)] ?? NaN
}

function longestWait(answers: readonly Answer[]): number {
  return Math.max(...answers.map(({ waitedMs, starvedMs }) => waitedMs - starvedMs))
}

const repeat = (status: number, times: number): number[] => Array.from({ length: times }, () => status)

test.each(Object.entries(outages))('no request suffers when Redis %s', async (_, outage) => {
  const { redis, relays, replicas, embedded } = await startAll()
  const [first, second] = replicas
  const load = startLoad([first, second, embedded])
  await sleep(500)

  await outage.begin(redis, relays)
  const beganAtMs = performance.now()
  await Promise.all(
    replicas.map(({ process }) => process.waitForLine(/Redis unavailable: circuit breaker open/)),
  )
  const givenUpAtMs = performance.now()

  // The onStoreError of each rule decides; with `local`, each gateway allows up to the quota.
  const spent = newAddress()
  expect(await statuses(first, '/local', spent, QUOTA + 2)).toEqual([...repeat(200, QUOTA), 429, 429])
  const refused = await ask(first, '/closed', newAddress())
  expect(refused.status).toBe(503)
  expect(refused.headers['content-type']).toBe('application/json')
  expect(refused.body).toBe('{"code":503,"error":"The rate limiter is not available"}')
  const passing = newAddress()
  expect(await statuses(second, '/open', passing, QUOTA + 5)).toEqual(repeat(200, QUOTA + 5))
  await sleep(Math.max(0, beganAtMs + OUTAGE_MS - performance.now()))
  const endedAtMs = performance.now()
  for (const { process } of replicas) expect(process.output().match(GIVEN_UP)).toHaveLength(1)
  await outage.end(redis, relays)
  await Promise.all(
    replicas.map(({ process }) => process.waitForLine(/Redis available: circuit breaker closed/)),
  )

  // A quota that is used up in one gateway is used up in all.
  expect(await statusesByRedis(first, '/local', spent, 2)).toEqual([429, 429])
  expect(await statusesByRedis(second, '/local', spent, 2)).toEqual([429, 429])
  for (const gateway of replicas) expect(await statuses(gateway, '/closed', newAddress(), 5)).toContain(200)
  await sleep(500)
  const answers = await load.stop()

  const ofReplicas = answers.filter(({ gateway }) => gateway !== embedded)
  expect(ofReplicas.filter(({ status }) => status !== 200)).toEqual([])
  const ofEmbedded = answers.filter(({ gateway }) => gateway === embedded)
  expect(longestWait(ofReplicas)).toBeLessThan(300)
  const isWhileAway = ({ atMs }: Answer): boolean => atMs > givenUpAtMs && atMs < endedAtMs
  const alone = medianWait(ofReplicas.filter(isWhileAway))
  const atEmbedded = medianWait(ofEmbedded.filter(isWhileAway))
  console.log(
    `median wait ${alone.toFixed(2)} ms without Redis, ${atEmbedded.toFixed(2)} ms with embedded counters`,
  )
  expect(alone).toBeLessThan(1.5 * atEmbedded + 0.5)
  for (const { process } of replicas) {
    // Once for the outage. On a busy machine, Redis may be slow once more after its return, and then recovers.
    const openings = process.output().match(GIVEN_UP)?.length
    expect(openings).toBeLessThanOrEqual(2)
    expect(process.output().match(BACK)).toHaveLength(openings ?? 0)
    expect(await process.stop()).toBe(0)
  }
  await embedded.process.stop()
  await redis.stop()
})

test('no request suffers when Redis restarts at once, and empty', async () => {
  const { redis, replicas, embedded } = await startAll()
  const load = startLoad(replicas)
  await sleep(500)
  await redis.kill()
  await redis.restart()
  await sleep(2_000)
  // Redis decides again: what one gateway has counted, the other refuses.
  const client = newAddress()
  expect(await statuses(replicas[0], '/local', client, QUOTA)).toEqual(repeat(200, QUOTA))
  expect(await statusesByRedis(replicas[1], '/local', client, 1)).toEqual([429])
  const answers = await load.stop()
  expect(answers.filter(({ status }) => status !== 200)).toEqual([])
  expect(longestWait(answers)).toBeLessThan(300)
  for (const { process } of replicas) {
    expect(process.output().match(GIVEN_UP)?.length ?? 0).toBeLessThanOrEqual(1)
    expect(await process.stop()).toBe(0)
  }
  await embedded.process.stop()
  await redis.stop()
})
