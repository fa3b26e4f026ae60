import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { CLOSED_PORT, freePort } from '../support/network/ports.ts'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { commandOf, type Finished } from '../support/gateway/process.ts'
import { directoryWith } from '../support/gateway/settings.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const token = 'of-the-operators'
const table = `limits:
  - { name: login, match: POST /login, requests: 2, window: 15m }
  - { name: api, match: GET /api, key: 'header:x-api-key', requests: 5, window: 15m }
`

/** Longer than the command takes to start and to read its input. */
const SLOW_INPUT_MS = 2_500

let gateway: GatewayProcess

beforeAll(async () => {
  const backend = await startBackend()
  const file = join(directoryWith(table), 'sluice.yaml')
  gateway = await startGateway({ CONFIG_FILE: file, UPSTREAM_URL: backend.url, ADMIN_TOKEN: token })
})

function sluice(
  args: readonly string[],
  env: Record<string, string> = { ADMIN_TOKEN: token },
): Promise<Finished> {
  const admin = args.includes('--admin') ? [] : ['--admin', `http://127.0.0.1:${gateway.adminPort}`]
  return runHosted([...args, ...admin], env)
}

async function jsonOf(...args: string[]): Promise<unknown> {
  const { status, stdout, stderr } = await sluice([...args, '--json'])
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  return JSON.parse(stdout)
}

describe('status', () => {
  test('sluice status says that the gateway is ready', async () => {
    await gateway.send('GET', '/')
    const { status, stdout } = await sluice(['status'])
    expect(status).toBe(0)
    expect(stdout).toMatch(
      /^alive {4}yes\nstatus {3}ready\nstore {4}memory\nbackend {2}available\nservers {2}1 of 1 used\nrules {4}2\n/,
    )
    expect(await jsonOf('status')).toMatchObject({ alive: true, ready: true, version: '0.1.0', rules: 2 })
  })

  test('sluice status is negative if nothing answers or the token is wrong', async () => {
    const away = await sluice(['status', '--admin', `http://127.0.0.1:${CLOSED_PORT}`])
    expect(away).toMatchObject({ status: 1, stdout: '' })
    expect(away.stderr).toMatch(
      /^error: no gateway answers at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\); --admin names another\n$/,
    )
    const blocked = await sluice(['status', '--admin', 'http://127.0.0.1:6000'])
    expect(blocked).toMatchObject({ status: 1, stdout: '' })
    expect(blocked.stderr).toContain(
      '(a port that browsers block, and this command too: choose another ADMIN_PORT)',
    )
    const unknown = await sluice(['status'], {})
    expect(unknown).toMatchObject({ status: 1, stdout: '' })
    expect(unknown.stderr).toContain('set ADMIN_TOKEN')
  })

  test.each(['localhost:9090', 'nowhere', 'ftp://a'])('status of %s is wrong usage', async (admin) => {
    expect(await sluice(['status', '--admin', admin])).toMatchObject({ status: 2, stdout: '' })
  })
})

describe('an invalid token, such as the content of another file, is wrong usage and not shown', () => {
  const needed = 'got a value that is not shown, needs 16 or more visible ASCII characters, no spaces'

  test.each(['status', 'replicas', 'bans', 'top', 'reload'])('%s', async (verb) => {
    const file = join(makeTemporaryDirectory(), 'token')
    writeFileSync(file, `of-the-operators\nof-a-customer-1234\n`)
    for (const [variable, value] of [
      ['ADMIN_TOKEN', 'of-the-operators\nof-a-customer-1234'],
      ['ADMIN_TOKEN', 'of-the-operators\u20ac'],
      ['SLUICE_ADMIN_TOKEN', 'of-the operators'],
    ] as const)
      expect(await sluice([verb], { [variable]: value })).toEqual({
        status: 2,
        stdout: '',
        stderr: `error: ${variable}: ${needed}\n`,
      })
    expect(await sluice([verb], { ADMIN_TOKEN_FILE: file })).toMatchObject({
      status: 2,
      stdout: '',
      stderr: `error: ADMIN_TOKEN: ${needed}\n`,
    })
  })
})

test('a path in --admin comes before each path of the admin interface', async () => {
  const proxy = await startBackend((_, response) => response.end('{"bans":[]}'))
  for (const path of ['', '/', '/sluice', '/sluice/', '//a/sluice'])
    await runHosted(['bans', '--limit', '5', '--admin', proxy.url + path])
  expect(proxy.seen.map(({ url }) => url)).toEqual([
    '/api/bans?limit=5',
    '/api/bans?limit=5',
    '/sluice/api/bans?limit=5',
    '/sluice/api/bans?limit=5',
    '//a/sluice/api/bans?limit=5',
  ])
})

test('a password in --admin is wrong usage and not shown', async () => {
  for (const admin of ['http://user:s3cret@127.0.0.1:9090', 'http://s3cret@127.0.0.1:9090'])
    expect(await sluice(['status', '--admin', admin])).toEqual({
      status: 2,
      stdout: '',
      stderr: 'error: --admin needs a URL without a user and a password\n',
    })
})

test('ADMIN_PORT says where the gateway is', async () => {
  const env = { ADMIN_TOKEN: token, ADMIN_PORT: String(gateway.adminPort) }
  expect(await runHosted(['status'], env)).toMatchObject({ status: 0, stderr: '' })
})

describe('replicas', () => {
  test('without Redis the gateway counts alone', async () => {
    expect((await sluice(['replicas'])).stdout).toMatch(/^this gateway counts alone/)
  })

  test('each replica is listed with the hash of its table', async () => {
    const REDIS_URL = await freshRedis()
    const env = { CONFIG_FILE: join(directoryWith(table), 'sluice.yaml'), REDIS_URL }
    const [one] = await Promise.all([startHosted(env), startHosted(env)])
    const admin = `http://127.0.0.1:${one.adminPort}`
    const line = '\\S+( \\(this one\\))? +ready +[0-9a-f]{12} +1 +0\\.1\\.0\\n'
    await eventually('both replicas are listed', async () => {
      const { stdout } = await runHosted(['replicas', '--admin', admin], {})
      expect(stdout).toMatch(new RegExp(`^HOST +STATUS +TABLE +PROCESSES +VERSION\\n(${line}){2}$`))
      expect(stdout.split('(this one)')).toHaveLength(2)
    })
  })
})

describe('show, limited and reset', () => {
  test('find a client that is refused, and let it back in', async () => {
    const from = '127.0.0.5'
    for (let i = 0; i < 4; i++) await gateway.send('POST', '/login', { from })
    const shown = await sluice(['show', from])
    expect(shown.status).toBe(0)
    expect(shown.stdout).toMatch(
      /^RULE +USED +LIMIT +LEFT +RESETS IN +STATE +SOURCE\nlogin +2 +2 +0 +(?:\d+[smhd] ?){1,2} +over limit +store\n$/,
    )
    expect(await jsonOf('show', `ip=${from}`, '--rule', 'login')).toMatchObject({ states: [{ used: 2 }] })

    const limited = await sluice(['limited', '--rule', 'login', '--limit', '5'])
    expect(limited.stdout).toMatch(
      /^RULE +CLIENT +REFUSED +RESETS IN\nlogin +127\.0\.0\.5 +2 +(?:\d+[smhd] ?){1,2}\n$/,
    )

    expect(await sluice(['reset', from])).toEqual({ status: 0, stdout: 'reset: login\n', stderr: '' })
    expect((await gateway.send('POST', '/login', { from })).status).toBe(200)
    expect(await jsonOf('limited')).toMatchObject({ clients: [] })
  })

  test('take a secret from a file, and a client as the list names it', async () => {
    const file = join(makeTemporaryDirectory(), 'key.txt')
    writeFileSync(file, 'very-secret\n')
    for (let i = 0; i < 6; i++) await gateway.send('GET', '/api', { headers: { 'x-api-key': 'very-secret' } })
    const expected = { states: [{ policy: 'api', used: 5, exceeded: true }] }
    expect(await jsonOf('show', `header:x-api-key=@${file}`)).toMatchObject(expected)
    expect(await jsonOf('show', '--rule', 'api', `@${file}`)).toMatchObject(expected)
    const { stdout } = await sluice(['limited', '--rule', 'api'])
    const [, id = ''] = /^api +(h:\S+)/m.exec(stdout) ?? []
    expect(await jsonOf('show', id, '--rule', 'api')).toMatchObject(expected)
    expect(await jsonOf('reset', id)).toEqual({ reset: ['api'], counted: ['api'] })
  })

  test.each(['show', 'reset', 'unban'])('%s takes a client from standard input', async (verb) => {
    const from = '127.0.0.16'
    await gateway.send('POST', '/login', { from })
    await sluice(['ban', from, '--for', '1h'])
    const { args, env } = commandOf('proxy/cli/main.ts')
    const admin = ['--admin', `http://127.0.0.1:${gateway.adminPort}`]
    const child = spawn(process.execPath, [...args, verb, '@-', ...admin], {
      env: { ...process.env, ...env, ADMIN_TOKEN: token },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    // Later than the command asks for it: reading a pipe must wait.
    await sleep(SLOW_INPUT_MS)
    child.stdin.end(`${from}\n`)
    const status = await new Promise((resolve) => child.once('close', resolve))
    await sluice(['unban', from])
    await sluice(['reset', from])
    const expected = { show: /banned for/, reset: /^reset: login\nstill banned for/, unban: /^lifted: / }[
      verb
    ]
    expect({ status, output }).toEqual({ status: 0, output: expect.stringMatching(expected ?? '') as string })
  })

  test.each([
    [['show', '127.0.0.1', '--rule', 'none'], 1],
    [['show', 'not-an-address'], 2],
    [['limited', '--limit', '0'], 2],
    [['show'], 2],
    [['show', 'ip=1', 'ip=2'], 2],
    [['show', '@/none/such'], 2],
  ])('%j ends with status %i', async (args, status) => {
    const finished = await sluice(args)
    expect(finished).toMatchObject({ status, stdout: '' })
    expect(finished.stderr).toMatch(/^error: /)
  })
})

test('limited has the label of a client, if one of the listed has any', async () => {
  const from = '127.0.0.15'
  const override = (requests: string) =>
    sluice(['override', from, '--rule', 'login', '--requests', requests, '--for', '1d', '--label', 'Acme'])
  await override('1')
  for (let i = 0; i < 3; i++) await gateway.send('POST', '/login', { from })
  const { stdout } = await sluice(['limited', '--rule', 'login'])
  expect(stdout).toMatch(/^RULE +CLIENT +REFUSED +RESETS IN +LABEL\n/)
  expect(stdout).toMatch(/^login +127\.0\.0\.15 +2 +\S.* Acme$/m)
  await sluice(['override', from, '--rule', 'login', '--remove'])
  await sluice(['reset', from])
})

test.each([
  ['x-api-key=secret', /got the part "x-api-key"\n$/],
  ['secret', /name other clients by the parts of the rule's key, such as header:x-api-key/],
])('show %s says how to name a client, without the value', async (client, message) => {
  const { status, stdout, stderr } = await sluice(['show', client])
  expect([status > 0, stdout]).toEqual([true, ''])
  expect(stderr).toMatch(message)
  expect(stderr).not.toContain('secret')
})

describe('ban, unban and bans', () => {
  test('ban a client from everything, and lift it', async () => {
    const from = '127.0.0.6'
    expect(await sluice(['unban', from])).toMatchObject({ status: 1, stdout: 'the client is not banned\n' })
    const banned = await sluice(['ban', from, '--for', '1h', '--reason', 'scraping'])
    expect(banned).toEqual({
      status: 0,
      stdout: 'banned: 127.0.0.6 under all rules for 1h\n',
      stderr: '',
    })
    const { status, headers } = await gateway.send('GET', '/', { from })
    expect([status, headers['retry-after']]).toEqual([429, expect.stringMatching(/^3[56]\d\d$/)])
    const { stdout } = await sluice(['bans'])
    expect(stdout).toMatch(/^CLIENT +RULE +ENDS IN +BY +IN A ROW +REASON\n/)
    expect(stdout).toMatch(/\n127\.0\.0\.6 +all +(?:\d+[smhd] ?){1,2} +operator +scraping\n$/)
    expect((await sluice(['show', from])).stdout).toMatch(
      /\nlogin .* banned for (?:\d+[smhd] ?){1,2} +store\n/,
    )
    const reset = await sluice(['reset', from, '--rule', 'login'])
    // Requests of a banned client are not counted.
    expect(reset.status).toBe(1)
    expect(reset.stdout).toMatch(/^nothing to reset: /)
    expect(reset.stderr).toMatch(/^still banned for .*: sluice unban lifts that\n$/)
    expect(await sluice(['unban', `ip=${from}`])).toMatchObject({
      status: 0,
      stdout: 'lifted: 127.0.0.6 under all rules\n',
    })
    expect((await gateway.send('GET', '/', { from })).status).toBe(200)
    expect((await sluice(['bans'])).stdout).toBe('no client is banned\n')
  })

  test('ban by a secret, under one rule', async () => {
    const headers = { 'x-api-key': 'of-a-customer' }
    await sluice(['ban', '--rule', 'api', 'of-a-customer', '--for', '10m'])
    expect((await gateway.send('GET', '/api', { headers })).status).toBe(429)
    expect((await gateway.send('GET', '/', { headers })).status).toBe(200)
    const { bans } = (await jsonOf('bans', '--limit', '5')) as { bans: { client: { id: string } }[] }
    expect(bans).toMatchObject([{ policy: 'api', by: 'operator' }])
    expect(JSON.stringify(bans)).not.toContain('of-a-customer')
    const id = bans[0]?.client.id ?? ''
    expect(await jsonOf('unban', id, '--rule', 'api')).toMatchObject({ unbanned: [{ policy: 'api' }] })
    expect((await gateway.send('GET', '/api', { headers })).status).toBe(200)
  })
})

describe('override and overrides', () => {
  test('give a client another limit, and take it back', async () => {
    const from = '127.0.0.8'
    for (let i = 0; i < 3; i++) await gateway.send('POST', '/login', { from })
    const args = ['override', from, '--rule', 'login']
    expect(await sluice([...args, '--requests', '3', '--for', '1d', '--label', 'the office'])).toEqual({
      status: 0,
      stdout: 'login: 3 requests for 1d\n',
      stderr: '',
    })
    const statuses = [
      await gateway.send('POST', '/login', { from }),
      await gateway.send('POST', '/login', { from }),
    ]
    expect(statuses.map(({ status }) => status)).toEqual([200, 429])
    const { stdout } = await sluice(['overrides'])
    expect(stdout).toMatch(
      /^CLIENT +RULE +REQUESTS +ENDS IN +LABEL\n127\.0\.0\.8 +login +3 +(?:1d|23h 59m) +the office\n$/,
    )
    expect((await sluice([...args, '--remove'])).stdout).toBe('removed: login\n')
    expect(await sluice([...args, '--remove'])).toMatchObject({
      status: 1,
      stdout: 'the client has no limit of its own under login\n',
    })
    expect((await sluice(['overrides'])).stdout).toBe('no client has a limit of its own\n')
  })

  test('override prints the number of requests that it has set, however it was written', async () => {
    const args = ['override', '127.0.0.9', '--rule', 'login']
    const { stdout } = await sluice([...args, '--requests', '1e3', '--for', '1d'])
    expect(stdout).toBe('login: 1000 requests for 1d\n')
    await sluice([...args, '--remove'])
  })
})

test.each([
  [['ban', '127.0.0.1'], 2],
  [['ban', '127.0.0.1', '--for', '1y'], 2],
  [['ban', '127.0.0.1', '--for', '1h', '--rule', 'none'], 1],
  [['bans', '--limit', '0'], 2],
  [['override', '127.0.0.1', '--rule', 'login'], 2],
  [['override', '127.0.0.1', '--requests', '5', '--for', '1d'], 2],
  [['override', '127.0.0.1', '--rule', 'login', '--requests', 'many', '--for', '1d'], 2],
])('%j ends with status %i and changes nothing', async (args, status) => {
  const finished = await sluice(args)
  expect(finished).toMatchObject({ status, stdout: '' })
  expect(finished.stderr).toMatch(/^error: /)
  expect([await jsonOf('bans'), await jsonOf('overrides')]).toEqual([
    { total: 0, bans: [] },
    { total: 0, overrides: [] },
  ])
})

test('reset of a client without counts is reported, with a negative status', async () => {
  const finished = await sluice(['reset', '192.0.2.99'])
  expect(finished).toEqual({
    status: 1,
    stdout: 'nothing to reset: the client has used up nothing of login\n',
    stderr: '',
  })
})

test.each([
  ['ban', '10.0.0.0/8', '--for', '1h'],
  ['unban', '10.0.0.0/8'],
  ['show', '10.0.0.0/8'],
  ['reset', '2001:db8::/32'],
  ['override', '10.0.0.0/8', '--rule', 'login', '--requests', '5', '--for', '1d'],
])('%s of a network names the settings that take networks', async (...args) => {
  const { status, stderr } = await sluice(args)
  expect(status).toBe(2)
  expect(stderr).toContain('networks go into denyList')
})

describe('without --admin', () => {
  const ask = async (yaml: string, env: Record<string, string> = {}): Promise<string> => {
    const { stderr } = await runHosted(['status'], env, directoryWith(yaml))
    return / at (\S+) /.exec(stderr)?.[1] ?? stderr
  }

  test('the gateway is where the variables and the file have it', async () => {
    const [port, other] = [await freePort(), await freePort()]
    expect(await ask(`adminPort: ${port}\n`)).toBe(`http://127.0.0.1:${port}`)
    expect(await ask(`adminPort: ${port}\n`, { ADMIN_PORT: String(other) })).toBe(`http://127.0.0.1:${other}`)
    expect(await ask(`adminPort: ${port}\nadminHost: 0.0.0.0\n`)).toBe(`http://127.0.0.1:${port}`)
    expect(await ask(`adminPort: ${port}\nadminHost: '::1'\n`)).toBe(`http://[::1]:${port}`)
    expect(await ask(`adminPort: \${P}\n`, { P: String(port) })).toBe(`http://127.0.0.1:${port}`)
    // The operator may be asking because of a mistake in the file.
    expect(await ask(`adminPort: ${port}\nnonsense: 1\n`)).toBe(`http://127.0.0.1:${port}`)
  })

  test('the gateway of a settings file elsewhere is found by CONFIG_FILE', async () => {
    const port = await freePort()
    const file = join(directoryWith(`adminPort: ${port}\n`), 'sluice.yaml')
    expect(await ask('', { SLUICE_CONFIG_FILE: file })).toBe(`http://127.0.0.1:${port}`)
  })
})

test('during an outage of Redis, show explains the outcome of a request, rule by rule', async () => {
  const backend = await startBackend()
  const rule = (name: string, fields: string): string =>
    `  - { name: ${name}, match: GET /${name}, requests: 2, window: 15m, onStoreError: ${fields} }\n`
  const yaml = `limits:\n${rule('local', 'local')}${rule('open', 'open')}${rule('closed', 'closed')}${rule('shadow', 'closed, mode: shadow')}`
  const outage = await startGateway({
    CONFIG_FILE: join(directoryWith(yaml), 'sluice.yaml'),
    UPSTREAM_URL: backend.url,
    REDIS_URL: `redis://127.0.0.1:${CLOSED_PORT}`,
  })
  const from = '127.0.0.9'
  for (let i = 0; i < 3; i++) await outage.send('GET', '/local', { from })
  const admin = ['--admin', `http://127.0.0.1:${outage.adminPort}`]
  const { stdout } = await runHosted(['show', from, ...admin])
  const stateOf = (name: string): string =>
    stdout
      .split('\n')
      .find((line) => line.startsWith(name))
      ?.replace(/ {2,}/g, '  ') ?? ''
  expect(stateOf('local')).toMatch(/^local {2}2 {2}2 {2}0 .* over limit {2}local$/)
  expect(stateOf('open')).toMatch(/not counted: Redis is unavailable {2}none$/)
  expect(stateOf('closed')).toMatch(/refused: Redis is unavailable {2}none$/)
  expect(stateOf('shadow')).toMatch(/not counted: Redis is unavailable {2}none$/)
  expect(stdout).not.toContain('within')
  expect((await outage.send('GET', '/closed', { from })).status).toBe(503)
})
