import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { runCommandLine } from '../../proxy/cli/run-command-line.ts'
import { startBackend } from '../support/http/backend.ts'
import { startGateway } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { makeTemporaryDirectory, writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'
import { wallClockMs } from '../support/calendar/wall-clock.ts'

// The table of limits changes while the gateway runs. reload-load.test.ts tests that nothing is dropped meanwhile.

const rule = (name: string, requests: number, more = ''): string =>
  `  - { name: ${name}, match: GET /${name}, requests: ${requests}, window: 10m${more} }\n`
const table = (...rules: string[]): string => `limits:\n${rules.join('')}`
const wrong = 'limits:\n  - { name: a, match: GET /a, requests: none, window: 10m }\n'

type Started = HostedGateway & { readonly file: string; reload(): Promise<{ status: number; body: unknown }> }

async function start(yaml: string, env: Record<string, string> = {}): Promise<Started> {
  const backend = await startBackend()
  const file = writeConfigFile(yaml)
  const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: file, ...env })
  return { ...gateway, file, reload: () => askOperator(gateway, 'POST', '/api/reload', {}) }
}

async function left({ send }: HostedGateway, path: string): Promise<string | undefined> {
  const { headers } = await send('GET', path)
  return /r=(\d+)/.exec(String(headers['ratelimit']))?.[1]
}

async function metric(gateway: HostedGateway, line: RegExp): Promise<string | undefined> {
  const response = await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)
  return line.exec(await response.text())?.[1]
}

const statusOf = async (gateway: HostedGateway): Promise<unknown> =>
  (await askOperator(gateway, 'GET', '/api/status')).body

// reload-load.test.ts tests workers that count in Redis.
describe.each(['memory', 'workers', 'Redis'])('%s', (place) => {
  // One gateway for all tests, because several processes take seconds to start. Each test has its own rules.
  let gateway: Started

  beforeAll(async () => {
    gateway = await start(table(rule('none', 1)), {
      ...(place === 'workers' && { WORKERS: '2' }),
      ...(place === 'Redis' && { REDIS_URL: await freshRedis() }),
    })
  })

  async function reloadWith(yaml: string): Promise<void> {
    writeFileSync(gateway.file, yaml)
    expect((await gateway.reload()).status).toBe(200)
  }

  test('a new table takes effect at once, and counts go on', async () => {
    await reloadWith(table(rule('a', 5), rule('b', 5), rule('same', 9)))
    for (let asked = 0; asked < 5; asked++) await gateway.send('GET', '/a')
    expect((await gateway.send('GET', '/a')).status).toBe(429)
    expect(await left(gateway, '/same')).toBe('8')
    writeFileSync(gateway.file, table(rule('same', 9), rule('a', 8), rule('new', 3)))
    const { status, body } = await gateway.reload()
    expect(status).toBe(200)
    expect(body).toMatchObject({
      outcome: 'reloaded',
      rules: 3,
      added: ['new'],
      changed: ['a'],
      removed: ['b'],
      restart: [],
    })
    expect(await left(gateway, '/a')).toBe('2')
    expect(await left(gateway, '/same')).toBe('7')
    expect(await left(gateway, '/new')).toBe('2')
    expect((await gateway.send('GET', '/b')).headers['ratelimit']).toBeUndefined()
    const { tableHash } = body as { tableHash: string }
    expect(tableHash).toMatch(/^[0-9a-f]{12}$/)
    expect(await statusOf(gateway)).toMatchObject({ rules: 3, tableHash })
    expect(await metric(gateway, /^sluice_config_info\{hash="(\w+)"\} 1$/m)).toBe(tableHash)
    const { body: limits } = await askOperator(gateway, 'GET', '/api/limits')
    expect(limits).toMatchObject({ limits: [{ name: 'same' }, { name: 'a', requests: 8 }, { name: 'new' }] })
    const decisions = await (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text()
    expect(decisions).toContain('sluice_decisions_total{policy="new",outcome="refused"} 0')
    expect(decisions).not.toContain('policy="b"')
    expect((await gateway.reload()).body).toMatchObject({ outcome: 'unchanged', tableHash, changed: [] })
  })

  test('a client over a lowered limit is refused at once, and passes again under a raised one', async () => {
    const kinds = ['', ', algorithm: sliding', ', algorithm: token-bucket']
    const rules = (requests: number): string =>
      table(...kinds.map((more, at) => rule(`kind-${at}`, requests, more)))
    await reloadWith(rules(6))
    const askAll = (): Promise<unknown[]> =>
      Promise.all(
        kinds.map(async (_more, at) => {
          const { status, headers } = await gateway.send('GET', `/kind-${at}`)
          return [status, /r=(-?\d+)/.exec(String(headers['ratelimit']))?.[1]]
        }),
      )
    for (let asked = 0; asked < 5; asked++) await askAll()
    await reloadWith(rules(2))
    // A bucket keeps its fill level, in which less than one of 2 requests is left.
    expect(await askAll()).toEqual([
      [429, '0'],
      [429, '0'],
      [429, '0'],
    ])
    expect(await askAll()).toEqual([
      [429, '0'],
      [429, '0'],
      [429, '0'],
    ])
    await reloadWith(rules(12))
    expect(await askAll()).toEqual([
      [200, '6'],
      [200, '6'],
      [200, '1'],
    ])
  })

  test('refusals that lead to a ban stay counted, and it lasts as the table says then', async () => {
    const banning = (after: number, seconds: number): string =>
      table(rule('banned', 1, `, ban: { after: ${after}, for: ${seconds}s, max: 1h }`))
    await reloadWith(banning(5, 60))
    for (let asked = 0; asked < 4; asked++) await gateway.send('GET', '/banned', { from: '127.0.0.20' })
    await reloadWith(banning(4, 600))
    await gateway.send('GET', '/banned', { from: '127.0.0.20' })
    await gateway.waitForLine(/"forSeconds":600,.*"msg":"client banned"/)
    expect(await metric(gateway, /^sluice_bans_total\{policy="banned"\} (\d)$/m)).toBe('1')
    // No process reports a removed rule any more.
    await reloadWith(table(rule('b', 1)))
    expect(await metric(gateway, /(policy="banned")/)).toBeUndefined()
  })

  test('a wrong file is refused with its mistakes, and the table stays', async () => {
    await reloadWith(table(rule('kept', 5)))
    const before = await statusOf(gateway)
    expect(await left(gateway, '/kept')).toBe('4')
    writeFileSync(gateway.file, wrong)
    const { status, body } = await gateway.reload()
    expect(status).toBe(422)
    expect(body).toEqual({
      code: 422,
      error: 'The settings are invalid; the current limits stay in effect',
      mistakes: [
        expect.stringMatching(/sluice\.yaml:2: rule "a", requests: got "?none"?, needs a whole number/),
      ],
    })
    expect(await left(gateway, '/kept')).toBe('3')
    const { tableHash } = before as { tableHash: string }
    expect(await statusOf(gateway)).toMatchObject({ tableHash, lastReloadSuccessful: false })
    expect(await metric(gateway, /^sluice_config_last_reload_successful (\d)$/m)).toBe('0')
    await gateway.waitForLine(
      /"level":"error".*rule \\"a\\", requests: .*"msg":"reload refused; keeping the current limits"/,
    )
    await reloadWith(table(rule('kept', 6)))
    expect(await statusOf(gateway)).toMatchObject({ lastReloadSuccessful: true })
    expect(await left(gateway, '/kept')).toBe('3')
    expect(await metric(gateway, /^sluice_config_last_reload_successful (\d)$/m)).toBe('1')
    const seconds = await metric(gateway, /^sluice_config_last_reload_success_timestamp_seconds (\S+)$/m)
    // A time of the wall clock.
    expect(Math.abs(Number(seconds) - wallClockMs() / 1000)).toBeLessThan(600)
  })
})

test('settings that need a restart are named, and the table is taken without them', async () => {
  const gateway = await start(table(rule('a', 5)))
  writeFileSync(gateway.file, `port: 1\nlogLevel: warn\nmaxConnections: 7\n${table(rule('a', 7))}`)
  expect((await gateway.reload()).body).toMatchObject({
    changed: ['a'],
    restart: ['logLevel', 'maxConnections'],
  })
  await gateway.waitForLine(/"level":"warn".*"settings":\["logLevel","maxConnections"\].*need a restart/)
  expect(await left(gateway, '/a')).toBe('6')
})

test('lists, headers and refusals are part of the table', async () => {
  const gateway = await start(table(rule('a', 1)))
  await gateway.send('GET', '/a')
  const rest = 'rateLimitHeaders: [x-ratelimit]\nrefusal: { status: 418, body: { no: true } }\n'
  writeFileSync(gateway.file, `${rest}denyList: [{ ip: 127.0.0.9 }]\n${table(rule('a', 1))}`)
  expect((await gateway.reload()).body).toMatchObject({ outcome: 'reloaded', changed: [], restart: [] })
  const refused = await gateway.send('GET', '/a')
  expect(refused).toMatchObject({ status: 418, body: '{"no":true}' })
  expect(refused.headers['x-ratelimit-limit']).toBe('1')
  expect((await gateway.send('GET', '/', { from: '127.0.0.9' })).status).toBe(403)
})

test('a request that has begun ends under the table that it has begun with', async () => {
  const answers: (() => void)[] = []
  const backend = await startBackend((_request, response) => answers.push(() => response.end('ok')))
  const more = ', countStatus: 500'
  const file = writeConfigFile(table(rule('a', 1, more), '  - { name: c, match: GET /c, concurrency: 1 }\n'))
  for (const WORKERS of ['1', '2']) {
    writeFileSync(file, table(rule('a', 1, more), '  - { name: c, match: GET /c, concurrency: 1 }\n'))
    const gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: file,
      ...(WORKERS === '2' && { WORKERS }),
    })
    const [counted, flying] = [gateway.send('GET', '/a'), gateway.send('GET', '/c')]
    await eventually('both answers have come', () => answers.length === 2)
    writeFileSync(file, table(rule('a', 9), rule('c', 5)))
    expect((await askOperator(gateway, 'POST', '/api/reload', {})).status).toBe(200)
    for (const answer of answers.splice(0)) answer()
    expect((await counted).status).toBe(200)
    expect((await flying).status).toBe(200)
    writeFileSync(file, table(rule('a', 1, more), '  - { name: c, match: GET /c, concurrency: 1 }\n'))
    expect((await askOperator(gateway, 'POST', '/api/reload', {})).status).toBe(200)
    const again = [gateway.send('GET', '/a'), gateway.send('GET', '/c')]
    await eventually('both answers have come', () => answers.length === 2)
    for (const answer of answers.splice(0)) answer()
    expect((await Promise.all(again)).map(({ status }) => status)).toEqual([200, 200])
  }
})

describe.concurrent('a change of the file is reloaded automatically', () => {
  const hashOf = async (gateway: HostedGateway): Promise<unknown> =>
    ((await statusOf(gateway)) as { tableHash: string }).tableHash

  test('a settings file written in place is reloaded, even through a bind mount', async () => {
    const gateway = await start(table(rule('a', 5)))
    const before = await hashOf(gateway)
    writeFileSync(gateway.file, table(rule('a', 6)))
    await eventually('another table takes effect', async () => (await hashOf(gateway)) !== before)
    writeFileSync(gateway.file, wrong)
    await gateway.waitForLine(/"trigger":"file".*"msg":"reload refused; keeping the current limits"/)
    expect(await left(gateway, '/a')).toBe('5')
    expect(gateway.output().match(/reload refused/g)).toHaveLength(1)
  })

  test('a file that is replaced by a rename, and named by a variable with the prefix, is reloaded', async () => {
    const file = writeConfigFile(table(rule('a', 5)))
    const backend = await startBackend()
    const started = await startHosted({ UPSTREAM_URL: backend.url, SLUICE_CONFIG_FILE: file })
    const gateway = { ...started, file }
    const before = await hashOf(gateway)
    writeFileSync(`${gateway.file}.new`, table(rule('a', 6)))
    renameSync(`${gateway.file}.new`, gateway.file)
    await eventually('another table takes effect', async () => (await hashOf(gateway)) !== before)
  })

  test('through the symbolic links of a ConfigMap of Kubernetes', async () => {
    const backend = await startBackend()
    const volume = makeTemporaryDirectory()
    const publish = (version: string, yaml: string): void => {
      mkdirSync(join(volume, version))
      writeFileSync(join(volume, version, 'sluice.yaml'), yaml)
      symlinkSync(version, join(volume, '..data_tmp'))
      renameSync(join(volume, '..data_tmp'), join(volume, '..data'))
    }
    publish('..2026_01', table(rule('a', 5)))
    const CONFIG_FILE = join(volume, 'sluice.yaml')
    symlinkSync('..data/sluice.yaml', CONFIG_FILE)
    const gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE })
    const before = await hashOf(gateway)
    publish('..2026_02', table(rule('a', 6)))
    await eventually('another table takes effect', async () => (await hashOf(gateway)) !== before)
    expect(await left(gateway, '/a')).toBe('5')
  })

  test('a missing or empty file is not reloaded', async () => {
    const gateway = await start(table(rule('a', 5)))
    const before = await hashOf(gateway)
    renameSync(gateway.file, `${gateway.file}.away`)
    expect((await gateway.reload()).body).toMatchObject({ code: 422 })
    writeFileSync(gateway.file, '')
    await sleep(1500)
    expect((await gateway.reload()).body).toMatchObject({
      code: 422,
      mistakes: [expect.stringMatching(/sluice\.yaml: is empty, but had settings before$/)],
    })
    expect(await hashOf(gateway)).toBe(before)
    expect(gateway.output()).not.toContain('"trigger":"file"')
  })
})

test.each(['1', '2'])('SIGHUP: WORKERS=%s', async (WORKERS) => {
  const backend = await startBackend()
  const file = writeConfigFile(table(rule('a', 5)))
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, CONFIG_FILE: file, WORKERS })
  writeFileSync(file, table(rule('a', 9)))
  gateway.process.child.kill('SIGHUP')
  await gateway.process.waitForLine(/"trigger":"signal","tableHash":"\w{12}".*"changed":1.*"limits reloaded"/)
  expect((await gateway.send('GET', '/a')).headers['ratelimit']).toContain('r=8')
  writeFileSync(file, wrong)
  gateway.process.child.kill('SIGHUP')
  await gateway.process.waitForLine(
    /"trigger":"signal","mistakes":.*"reload refused; keeping the current limits"/,
  )
  expect((await gateway.send('GET', '/a')).headers['ratelimit']).toContain('r=7')
})

test('sluice reload', async () => {
  const gateway = await start(table(rule('a', 5)))
  const admin = ['--admin', `http://127.0.0.1:${gateway.adminPort}`]
  writeFileSync(gateway.file, table(rule('a', 6)))
  expect(await runCommandLine(['reload', ...admin])).toBe(0)
  writeFileSync(gateway.file, wrong)
  expect(await runCommandLine(['reload', ...admin])).toBe(1)
})
