import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createClock,
  startSluice,
  type Sluice,
  type SluiceOptions,
} from '../../proxy/testing/embedded/start-sluice.ts'
import { certificateFiles } from '../support/network/certificates.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'
import { startBackend } from '../support/http/backend.ts'
import { freshRedis, startRedisServer } from '../support/redis/redis.ts'
import { passes } from '../support/wait/passes.ts'
import { refusalsCounted } from '../support/limiter/refusals-counted.ts'

let upstream: string

beforeAll(async () => {
  upstream = (await startBackend()).url
})

const limits = [{ name: 'login', match: 'POST /login', requests: 2, window: '15m' }]

async function logins(gateway: Sluice, count: number): Promise<number[]> {
  const statuses: number[] = []
  for (let i = 0; i < count; i++) {
    const response = await fetch(`${gateway.url}/login`, { method: 'POST' })
    await response.arrayBuffer()
    statuses.push(response.status)
  }
  return statuses
}

describe('a gateway in the process of a test', () => {
  const clock = createClock()
  let gateway: Sluice
  const signals = ['uncaughtException', 'unhandledRejection', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const
  const listening = (): number[] => signals.map((name) => process.listenerCount(name))
  const before = listening()

  beforeAll(async () => {
    gateway = await startSluice({ upstream, limits, clock })
  })
  afterAll(() => gateway.close())

  test('limits requests, and a window passes as soon as the clock is advanced', async () => {
    expect(await logins(gateway, 3)).toEqual([200, 200, 429])
    clock.advance('14m')
    const refused = await fetch(`${gateway.url}/login`, { method: 'POST' })
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60'])
    clock.advance(60_000)
    expect(await logins(gateway, 3)).toEqual([200, 200, 429])
  })

  test('an embedded gateway begins a new calendar window when the clock is advanced to its start', async () => {
    await using daily = await startSluice({
      upstream,
      clock,
      limits: [{ name: 'login', match: 'POST /login', requests: 2, window: 'day', timezone: 'Asia/Tokyo' }],
    })
    expect(await logins(daily, 2)).toEqual([200, 200])
    const refused = await fetch(`${daily.url}/login`, { method: 'POST' })
    expect(refused.status).toBe(429)
    expect(refused.headers.get('ratelimit-policy')).toBe('"login";q=2;w=86400')
    clock.advance(1000 * Number(refused.headers.get('retry-after')))
    expect(await logins(daily, 3)).toEqual([200, 200, 429])
  })

  test('an embedded gateway tells the length of the calendar window that its clock is in', async () => {
    const own = createClock()
    await using monthly = await startSluice({
      upstream,
      clock: own,
      limits: [{ name: 'login', match: 'POST /login', requests: 2, window: 'month' }],
    })
    own.advance(Date.UTC(2098, 1, 10) - wallClockMs())
    const { headers } = await fetch(`${monthly.url}/login`, { method: 'POST' })
    expect(headers.get('ratelimit-policy')).toBe('"login";q=2;w=2419200')
  })

  test('an embedded gateway forgets counters, bans and overrides at reset', async () => {
    await logins(gateway, 3)
    const operate = (path: string, body: object): Promise<Response> =>
      fetch(`${gateway.adminUrl}/api/clients/${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ client: { ip: '127.0.0.1' }, for: '1h', ...body }),
      })
    expect((await operate('override', { policy: 'login', requests: 5 })).status).toBe(200)
    expect((await operate('ban', {})).status).toBe(200)
    await gateway.reset()
    expect(await logins(gateway, 3)).toEqual([200, 200, 429])
    await gateway.reset()
    expect(await logins(gateway, 3)).toEqual([200, 200, 429])
  })

  test('an embedded gateway has health checks, metrics and the operator API', async () => {
    const metrics = await fetch(`${gateway.adminUrl}/metrics`).then((response) => response.text())
    expect(metrics).toContain('sluice_decisions_total{policy="login",outcome="refused"}')
    expect(await fetch(`${gateway.adminUrl}/readyz`).then(({ status }) => status)).toBe(200)
  })

  test('an embedded gateway leaves exceptions and signals of the process alone', () => {
    expect(listening()).toEqual(before)
  })
})

test('a client that is refused too often is banned by the given clock: refusals, bans and their lengths', async () => {
  const clock = createClock()
  const ban = { after: 3, for: '1m', max: '4m', scope: 'all' as const }
  await using gateway = await startSluice({
    upstream,
    limits: [{ name: 'login', match: 'POST /login', requests: 1, window: '15m', ban }],
    clock,
  })
  /** The remaining seconds of the client's ban; 0 if it is not banned. */
  const bannedFor = async (): Promise<number> => {
    await refusalsCounted()
    const response = await fetch(`${gateway.url}/elsewhere`)
    await response.arrayBuffer()
    return Number(response.headers.get('retry-after') ?? 0)
  }
  expect(await logins(gateway, 3)).toEqual([200, 429, 429])
  expect(await bannedFor()).toBe(0)
  // Refusals more than a window ago do not count.
  clock.advance('15m')
  expect(await logins(gateway, 3)).toEqual([200, 429, 429])
  expect(await bannedFor()).toBe(0)
  expect(await logins(gateway, 1)).toEqual([429])
  const lengths = [await bannedFor()]
  for (let again = 1; again <= 3; again++) {
    clock.advance((lengths.at(-1) ?? 0) * 1000)
    expect(await bannedFor()).toBe(0)
    // The first request may pass, as its window has ended too.
    await logins(gateway, 4)
    lengths.push(await bannedFor())
  }
  expect(lengths).toEqual([60, 120, 240, 240])
})

test('an embedded gateway is gone when it is closed, and may be started again', async () => {
  for (let i = 0; i < 2; i++) {
    const gateway = await startSluice({ upstream, limits })
    const { url } = gateway
    {
      await using held = gateway
      expect(await logins(held, 1)).toEqual([200])
    }
    await expect(fetch(url)).rejects.toThrow()
  }
})

test('two embedded gateways have counters of their own', async () => {
  await using one = await startSluice({ upstream, limits })
  await using other = await startSluice({ upstream, limits })
  expect(await logins(one, 3)).toEqual([200, 200, 429])
  expect(await logins(other, 3)).toEqual([200, 200, 429])
})

test('the embedded gateway takes further settings, and nothing from the environment', async () => {
  process.env['RATE_LIMITING_DISABLED'] = '1'
  process.env['SLUICE_PORTT'] = '1'
  try {
    const settings = { rateLimitHeaders: ['x-ratelimit' as const], denyList: [{ ip: '127.0.0.9' }] }
    await using gateway = await startSluice({ upstream, limits, settings })
    const response = await fetch(`${gateway.url}/login`, { method: 'POST' })
    expect(response.headers.get('x-ratelimit-remaining')).toBe('1')
  } finally {
    delete process.env['RATE_LIMITING_DISABLED']
    delete process.env['SLUICE_PORTT']
  }
})

test('the embedded gateway lists all mistakes, and names no file', async () => {
  const started = startSluice({
    upstream: 'nowhere',
    limits: [{ name: 'a', match: 'GET /', requests: 0, window: '1m' }],
  })
  await expect(started).rejects.toMatchObject({
    problems: [
      'upstream: got "nowhere", needs http://HOST[:PORT][/PREFIX], or the same with https:// or h2c://, without user, query and fragment',
      'rule "a", requests: got 0, needs a whole number from 1 to 1000000000',
    ],
  })
})

test('the embedded gateway refuses options and secrets that it does not know', async () => {
  const secrets = { DEVICE_SECRETS: 'a', PORT: '8080' }
  const options = { upstream, limit: [], adminPort: 0, secrets } as object
  await expect(startSluice(options as SluiceOptions)).rejects.toMatchObject({
    problems: [
      'limit: unknown option, did you mean limits?',
      'adminPort: unknown option; settings of sluice.yaml go into settings',
      'DEVICE_SECRETS: unknown secret, did you mean DEVICE_SECRET?',
      'PORT: unknown secret; settings of sluice.yaml go into settings',
    ],
  })
})

test.each<[string, unknown, string]>([
  ['no options', undefined, 'upstream: missing, needs the URL of the backend'],
  ['no upstream', { upstream: undefined }, 'upstream: missing, needs the URL of the backend'],
  [
    'a clock that tells no time',
    { upstream: 'http://x', clock: {} },
    'clock: needs a clock from createClock()',
  ],
  [
    'workers',
    { upstream: 'http://x', settings: { workers: 3 } },
    'settings.workers: the gateway is embedded in this process, and has no workers',
  ],
  [
    'limits among the settings',
    { upstream: 'http://x', settings: { limits: [] } },
    'settings.limits: is an option of its own, next to settings',
  ],
])('the embedded gateway refuses %s', async (_, options, problem) => {
  await expect(startSluice(options as SluiceOptions)).rejects.toMatchObject({ problems: [problem] })
})

test('the mistakes that an embedded gateway lists speak of no environment and no line, which it has not read', async () => {
  const rule = { name: 'a', match: 'GET /', requests: 1, window: '1m' }
  const disabled = { rateLimitingDisabled: true } as object
  const started = startSluice({ upstream, limits: [rule, rule], settings: disabled })
  await expect(started).rejects.toMatchObject({
    problems: [
      'unknown field "rateLimitingDisabled", which is a variable of the environment and not read here',
      'rule "a", name: duplicate name, another rule has the same',
    ],
  })
  const withVariable = startSluice({ upstream, settings: { requestHeaders: { 'x-home': '${HOME}' } } })
  await expect(withVariable).rejects.toMatchObject({
    problems: [
      '${HOME} stands for a variable of the environment, which is not read here: for the text, write $${HOME}',
    ],
  })
})

test('the clock of a test shows the value that it refuses as a time', () => {
  expect(() => {
    createClock().advance(NaN)
  }).toThrow('advance: got NaN, needs milliseconds or a time such as 15m')
})

test('an embedded gateway takes a tenth of the memory for counters that a gateway of its own takes', async () => {
  const before = process.memoryUsage().arrayBuffers
  await using gateway = await startSluice({ upstream, limits })
  await logins(gateway, 1)
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20e6)
})

test('an embedded gateway takes the secrets that its rules, webhooks and Redis need', async () => {
  const limit = {
    name: 'login',
    match: 'POST /login',
    key: 'body:email',
    requests: 2,
    window: '15m',
    device: { status: ['2xx' as const] },
  }
  const url = await freshRedis()
  const settings = { redisUrl: url, webhooks: [{ url: 'http://127.0.0.1:1/', events: ['ban' as const] }] }
  const withPassword = url.replace('//', '//:secret@')
  const missing = startSluice({
    upstream,
    limits: [limit],
    settings: { ...settings, redisUrl: withPassword },
  })
  await expect(missing).rejects.toMatchObject({
    problems: [
      'redisUrl: holds a password, set REDIS_URL in secrets instead',
      'rule "login", device: needs DEVICE_SECRET in secrets, which signs its cookies',
      'webhooks: needs WEBHOOK_SECRET in secrets, which signs them',
    ],
  })
  const secrets = {
    DEVICE_SECRET: 'd'.repeat(40),
    WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 'w').toString('base64')}`,
    ADMIN_TOKEN: 'a'.repeat(40),
    REDIS_URL: url,
  }
  await using gateway = await startSluice({
    upstream,
    limits: [limit],
    settings: { ...settings, redisUrl: 'redis://127.0.0.1:1' },
    secrets,
  })
  const response = await fetch(`${gateway.url}/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"email":"a@example.com"}',
  })
  expect(response.headers.get('set-cookie')).toMatch(/^sluice_device=/)
  expect((await fetch(`${gateway.adminUrl}/metrics`)).status).toBe(401)
  await expect(gateway.reset()).rejects.toThrow('the counters are in Redis')
})

test('an embedded gateway counts in Redis with other gateways, by the time of Redis', async () => {
  const settings = { redisUrl: await freshRedis(), namespace: `embedded-${process.pid}` }
  await using one = await startSluice({ upstream, limits, settings })
  await using other = await startSluice({ upstream, limits, settings })
  expect([...(await logins(one, 1)), ...(await logins(other, 2))]).toEqual([200, 200, 429])
  await expect(one.reset()).rejects.toThrow('the counters are in Redis')
  await expect(startSluice({ upstream, limits, settings, clock: createClock() })).rejects.toThrow('clock')
})

test('an embedded gateway waits for a slow Redis, so that counts are exact on a busy machine', async () => {
  const redis = await startRedisServer()
  const settings = { redisUrl: redis.url }
  await using one = await startSluice({ upstream, limits, settings })
  await using other = await startSluice({ upstream, limits, settings })
  expect(await logins(one, 2)).toEqual([200, 200])
  await redis.signal('SIGSTOP')
  const late = logins(other, 1)
  await passes(300)
  await redis.signal('SIGCONT')
  expect(await late).toEqual([429])
})

test.for([-1, Number.NaN, '15', '1.5m', '-1s', ''])('a clock cannot be moved by %j', (time) => {
  expect(() => createClock().advance(time)).toThrow(TypeError)
})

test('a gateway with a certificate has a URL with https, and leaves signals alone', async () => {
  const before = process.listenerCount('SIGHUP')
  const { cert, key } = certificateFiles('first')
  await using gateway = await startSluice({
    upstream: 'http://127.0.0.1:1',
    settings: { tlsCertFile: cert, tlsKeyFile: key },
  })
  expect(gateway.url).toMatch(/^https:/)
  expect(process.listenerCount('SIGHUP')).toBe(before)
})
