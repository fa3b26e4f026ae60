import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { fieldLines, startBackend, type Backend } from '../support/http/backend.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { send, type Reply } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const table = `
trustedProxies: [127.0.0.0/8]
limits:
  - name: account
    match: ['GET,POST /login', POST /basket]
    key: query:user
    requests: 5
    window: 15m
    countStatus: [401]
    device: { status: [2xx, 303] }
  - name: members
    match: POST /members
    key: { first: [body:email, body:user.login, ip] }
    requests: 5
    window: 15m
    countStatus: [401]
    device: { status: [2xx, 303], cookie: member }
  - name: codes
    match: POST /code
    key: header:x-user
    requests: 2
    window: 15m
    device: { status: 204 }
`
const secret = 'a-secret-of-thirty-two-characters-or-more'

/** The host of all gateways, whatever their port is. */
const host = 'shop.example.com'

const places = ['memory', 'workers', 'Redis'] as const

/** A new account for each test. */
let accounts = 0
const newAccount = (): string => `owner-${++accounts}@example.com`

/** Starts a login service. The right password is `right`; the query sets the status of a successful sign-in. */
async function startLogin(): Promise<Backend> {
  return startBackend((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://backend')
    const status = searchParams.get('password') === 'right' ? Number(searchParams.get('status') ?? 200) : 401
    const { cache, cdn } = request.headers
    response.writeHead(status, [
      ...(typeof cache === 'string' ? [['Cache-Control', cache]] : []),
      ...(typeof cdn === 'string' ? [cdn.split(/=(.*)/, 2)] : []),
      ['Set-Cookie', 'session=1; Path=/'],
      ['Set-Cookie', 'sluice_device=forged; Path=/'],
    ])
    response.end()
  })
}

function cookiesSet({ headers }: Pick<Reply, 'headers'>): readonly string[] {
  return headers['set-cookie'] ?? []
}

function deviceIn(reply: Pick<Reply, 'headers'>): string {
  const [line = ''] = cookiesSet(reply).filter((set) => set.startsWith('sluice_device='))
  return line.split(';', 1)[0] ?? ''
}

describe.each(places)('devices of rules that are counted in %s', (place) => {
  let backend: Backend
  let gateways: HostedGateway[]
  let first: HostedGateway
  let turn = 0

  beforeAll(async () => {
    backend = await startLogin()
    const file = join(makeTemporaryDirectory(), 'sluice.yaml')
    writeFileSync(file, table)
    const env = {
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: file,
      DEVICE_SECRET: secret,
      ...(place === 'workers' && { WORKERS: '2' }),
      ...(place === 'Redis' && { REDIS_URL: await freshRedis() }),
    }
    gateways = await Promise.all(Array.from({ length: place === 'Redis' ? 2 : 1 }, () => startHosted(env)))
    first = gateways[0] as HostedGateway
  })

  /** Signs in from another address each time, at each gateway in turn. */
  async function login(
    user: string,
    password: 'right' | 'wrong',
    cookie = '',
    { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
  ): Promise<Reply> {
    const gateway = gateways[++turn % gateways.length] ?? first
    const target = `/login?user=${encodeURIComponent(user)}&password=${password}&status=${status}`
    const sent = {
      host,
      'x-forwarded-for': `192.0.2.${turn % 250}`,
      ...headers,
      ...(cookie !== '' && { cookie }),
    }
    return gateway.send('POST', target, { headers: sent })
  }

  const statusesOf = async (times: number, ...args: Parameters<typeof login>): Promise<number[]> => {
    const statuses: number[] = []
    for (let i = 0; i < times; i++) statuses.push((await login(...args)).status)
    return statuses
  }

  test('the owner of an account signs in with a known device while strangers have used up its guesses', async () => {
    const user = newAccount()
    const device = deviceIn(await login(user, 'right'))
    expect(await statusesOf(7, user, 'wrong')).toEqual([401, 401, 401, 401, 401, 429, 429])
    expect((await login(user, 'right')).status).toBe(429)
    expect((await login(user, 'right', device)).status).toBe(200)
    // Each device of the account has the same quota, and a counter of its own.
    const other = deviceIn(await login(user, 'right', device))
    expect(await statusesOf(6, user, 'wrong', device)).toEqual([401, 401, 401, 401, 401, 429])
    expect((await login(user, 'right', device)).status).toBe(429)
    expect((await login(user, 'right', other)).status).toBe(200)
  })

  test('a cookie of one account is worth nothing for another', async () => {
    const [mine, yours] = [newAccount(), newAccount()]
    const device = deviceIn(await login(mine, 'right'))
    expect(await statusesOf(6, yours, 'wrong', device)).toEqual([401, 401, 401, 401, 401, 429])
    expect((await login(mine, 'right', device)).status).toBe(200)
  })

  test('the owner of an account that a lenient backend mistakes for another gets no device for the other', async () => {
    const victim = newAccount()
    const mine = victim.toUpperCase()
    const devices = []
    for (let i = 0; i < 4; i++) devices.push(deviceIn(await login(mine, 'right')))
    expect(await statusesOf(5, victim, 'wrong', devices.join('; '))).toEqual([401, 401, 401, 401, 401])
    for (const device of devices) expect((await login(victim, 'wrong', device)).status).toBe(429)
    expect((await login(mine, 'right', devices[0])).status).toBe(200)
  })

  test('a cookie of one host is worth nothing at another', async () => {
    const user = newAccount()
    const at = (host: string) => ({ headers: { host } })
    const device = deviceIn(await login(user, 'right', '', at('www.example.com')))
    expect(device).not.toBe('')
    expect(await statusesOf(5, user, 'wrong')).toEqual([401, 401, 401, 401, 401])
    for (const other of ['app.example.com', 'www.example.com:8080', 'www.example.com.'])
      expect((await login(user, 'right', device, at(other))).status).toBe(429)
    expect((await login(user, 'right', device, at('WWW.example.com'))).status).toBe(200)
  })

  test('a cookie of one rule is worth nothing under another', async () => {
    const user = newAccount()
    const device = deviceIn(await login(user, 'right'))
    const headers = { 'x-user': user, cookie: device }
    const statuses = []
    for (let i = 0; i < 3; i++) statuses.push((await first.send('POST', '/code', { headers })).status)
    expect(statuses).toEqual([401, 401, 429])
  })

  test('only a response with one of the statuses sets the cookie, with its attributes', async () => {
    const user = newAccount()
    for (const status of [200, 204, 299, 303]) {
      const reply = await login(user, 'right', '', { status })
      expect(cookiesSet(reply)).toEqual([
        'session=1; Path=/',
        expect.stringMatching(
          /^sluice_device=[\w-]{70}; Max-Age=7776000; Path=\/; HttpOnly; SameSite=Lax$/,
        ) as string,
      ])
    }
    for (const status of [302, 304, 400, 401, 500])
      expect(cookiesSet(await login(user, 'right', '', { status }))).toEqual(['session=1; Path=/'])
    expect(cookiesSet(await login(user, 'wrong'))).toEqual(['session=1; Path=/'])
    const secure = { headers: { 'x-forwarded-proto': 'https' } }
    expect(cookiesSet(await login(user, 'right', '', secure))[1]).toMatch(/; SameSite=Lax; Secure$/)
  })

  test('one browser is known for several accounts', async () => {
    const users = [newAccount(), newAccount(), newAccount()]
    let device = ''
    for (const user of users) device = deviceIn(await login(user, 'right', device))
    for (const user of users) {
      expect(await statusesOf(6, user, 'wrong')).toEqual([401, 401, 401, 401, 401, 429])
      expect((await login(user, 'right', device)).status).toBe(200)
    }
    // A new token replaces the one before.
    const again = deviceIn(await login(users[0] ?? '', 'right', device))
    expect(again.split('.')).toHaveLength(3)
    expect(again).not.toBe(device)
  })

  test('a response that caches may give to others sets no cookie', async () => {
    const get = async (headers: Record<string, string>) =>
      deviceIn(await first.send('GET', `/login?user=${newAccount()}&password=right`, { headers }))
    for (const cache of ['', 'public, max-age=60', 'no-cache'])
      expect(await get({ ...(cache !== '' && { cache }) })).toBe('')
    for (const cache of ['private', 'no-store, max-age=0']) expect(await get({ cache })).not.toBe('')
    // `private` with a field name applies only to that header.
    expect(await get({ cache: 'private="x-a", max-age=60' })).toBe('')
    for (const [cdn, isStored] of [
      ['cdn-cache-control=max-age=60', true],
      ['x-litespeed-cache-control=public', true],
      ['x-accel-expires=60', true],
      ['x-accel-expires=0', false],
      ['surrogate-control=no-store', false],
    ] as const)
      expect((await get({ cache: 'private', cdn })) === '', cdn).toBe(isStored)
  })

  test('a page of another site that makes the browser sign in does not replace its cookie', async () => {
    const from = (site: string) => ({ headers: { 'sec-fetch-site': site } })
    // `SameSite=Lax`: browsers send a form of another site without the cookie, and a new cookie would replace the old one.
    expect(deviceIn(await login(newAccount(), 'right', '', from('cross-site')))).toBe('')
    for (const site of ['same-origin', 'same-site', 'none'])
      expect(deviceIn(await login(newAccount(), 'right', '', from(site)))).not.toBe('')
    // A link in an e-mail is sent with the cookie.
    const headers = { cache: 'no-store', 'sec-fetch-site': 'cross-site' }
    const link = `/login?user=${newAccount()}&password=right`
    expect(deviceIn(await first.send('GET', link, { headers }))).not.toBe('')
  })

  test('a ban of an account does not ban its devices; a limit set for an account applies to each device', async () => {
    const user = newAccount()
    const device = deviceIn(await login(user, 'right'))
    const client = { 'query:user': user }
    const name = { policy: 'account', client, for: '1h' }
    expect((await askOperator(first, 'POST', '/api/clients/override', { ...name, requests: 2 })).status).toBe(
      200,
    )
    await eventually('all gateways know the limit', async () => {
      expect(await statusesOf(2, user, 'wrong')).toContain(429)
    })
    expect(await statusesOf(3, user, 'wrong', device)).toEqual([401, 401, 429])
    const other = newAccount()
    const known = deviceIn(await login(other, 'right'))
    const ban = { client: { 'query:user': other }, for: '1h' }
    expect((await askOperator(first, 'POST', '/api/clients/ban', ban)).status).toBe(200)
    await eventually('all gateways know the ban', async () => {
      expect(await statusesOf(2, other, 'right')).toEqual([429, 429])
    })
    expect((await login(other, 'right', known)).status).toBe(200)
  })

  test('a request that names two accounts gets no device', async () => {
    const [mine, yours] = [newAccount(), newAccount()]
    const target = `/login?user=${mine}&user=${yours}&password=right`
    expect(cookiesSet(await first.send('POST', target))).toEqual(['session=1; Path=/'])
  })

  describe('a request that the backend may take for one with another method', () => {
    const wrapped = (body: string): [string, string] => [
      'multipart/form-data; boundary=b',
      `--b\r\nContent-Disposition: form-data; name="_method"\r\n\r\n${body}\r\n--b--\r\n`,
    ]
    const form = 'application/x-www-form-urlencoded'
    const sent: readonly (readonly [string, string, string])[] = [
      ['a form', form, 'a=1&_method=PUT'],
      ['a form without its type', 'text/plain', '_method=get'],
      ['a form in parts', ...wrapped('GET')],
      ['JSON', 'application/json', '{"_method":"GET"}'],
      ['a form after 64 KiB', form, `a=${'1'.repeat(65_536)}&_method=GET`],
    ]
    /** Sends a sign-in code, under a rule whose key is not in the body. */
    async function enterCode(user: string, cookie: string, type?: string, body?: string, query = '') {
      const headers = {
        'x-user': user,
        ...(cookie !== '' && { cookie }),
        ...(type && { 'content-type': type }),
      }
      const options = body === undefined ? { headers } : { headers, body }
      return first.send('POST', `/code?password=right&status=204${query}`, options)
    }

    test.each(sent)('a sign-in with `_method` in %s gets no device', async (_, type, body) => {
      const user = newAccount()
      const own = deviceIn(await enterCode(user, '', form, 'code=1&_method=post'))
      expect(own).not.toBe('')
      expect(deviceIn(await enterCode(user, '', type, body))).toBe('')
      // Such a request does not count by its device either.
      expect((await enterCode(user, own, type, body)).status).toBe(429)
      expect((await enterCode(user, own, form, 'code=1')).status).toBe(204)
    })

    test('a sign-in with `_method` in the query, or with a header for the method, gets no device', async () => {
      expect(deviceIn(await enterCode(newAccount(), '', undefined, undefined, '&_method=GET'))).toBe('')
      const headers = { 'x-user': newAccount(), 'x-http-method-override': 'GET' }
      const reply = await first.send('POST', '/code?password=right&status=204', { headers })
      expect([reply.status, deviceIn(reply)]).toEqual([204, ''])
    })
  })

  test('the backend never gets the cookie, and others as they were sent', async () => {
    const sent: readonly (readonly [string, string | undefined])[] = [
      ['a=1;  sluice_device=x ;b="2;c"', 'a=1;b="2;c"'],
      ['sluice_device=x; a=%41', 'a=%41'],
      ['SLUICE_DEVICE=x; sluice%5Fdevice=y; sluice.device=z', undefined],
      ['a=b, sluice_device=x; c=d', 'a=b; c=d'],
      [
        'sluice_devices=1; my_sluice_device=2; sluice_device',
        'sluice_devices=1; my_sluice_device=2; sluice_device',
      ],
    ]
    for (const [cookie, left] of sent) {
      backend.seen.length = 0
      // Sent even to paths without a rule, as browsers send the cookie everywhere.
      for (const path of ['/login?user=anybody', '/']) await first.send('POST', path, { headers: { cookie } })
      for (const seen of backend.seen)
        expect(fieldLines(seen, 'cookie')).toEqual(left === undefined ? [] : [left])
      expect(backend.seen).toHaveLength(2)
    }
  })

  test('over HTTP/2 as well, with each cookie in a header of its own', async () => {
    const user = newAccount()
    const device = deviceIn(await login(user, 'right'))
    await statusesOf(5, user, 'wrong')
    const session = connectHttp2(first.port, { cleartext: true })
    const path = `/login?user=${encodeURIComponent(user)}&password=right`
    const ask = (cookie: string[]) =>
      sendHttp2(session, { ':method': 'POST', ':authority': host, ':path': path, cookie })
    expect((await ask(['a=1'])).status).toBe(429)
    backend.seen.length = 0
    const reply = await ask(['a=1', device, 'b=2'])
    expect(reply.status).toBe(200)
    expect(reply.headers['set-cookie']).toHaveLength(2)
    expect(backend.seen.map((seen) => fieldLines(seen, 'cookie'))).toEqual([['a=1; b=2']])
    session.close()
  })

  describe('an account in the body', () => {
    const forms = {
      JSON: (email: string) => ['application/json', JSON.stringify({ email, more: [1] })],
      form: (email: string) => [
        'application/x-www-form-urlencoded',
        `email=${encodeURIComponent(email)}&x=1`,
      ],
      multipart: (email: string) => [
        'multipart/form-data; boundary=b',
        `--b\r\nContent-Disposition: form-data; name="email"\r\n\r\n${email}\r\n--b--\r\n`,
      ],
      'JSON, nested': (login: string) => ['application/json', JSON.stringify({ user: { login } })],
    } as const
    const send = async (
      [type = '', body = '']: readonly string[],
      password: 'right' | 'wrong',
      cookie = '',
    ): Promise<Reply> => {
      const gateway = gateways[++turn % gateways.length] ?? first
      const headers = {
        host,
        'content-type': type,
        'x-forwarded-for': `198.51.${place.length}.${turn % 250}`,
        ...(cookie !== '' && { cookie }),
      }
      return gateway.send('POST', `/members?password=${password}`, { headers, body })
    }
    const deviceOf = (reply: Reply): string =>
      (cookiesSet(reply).find((line) => line.startsWith('member=')) ?? '').split(';', 1)[0] ?? ''

    test.each(Object.entries(forms))('%s: its owner signs in while strangers guess', async (_, write) => {
      const user = newAccount()
      const device = deviceOf(await send(write(user), 'right'))
      const statuses = []
      for (let i = 0; i < 6; i++) statuses.push((await send(write(user), 'wrong')).status)
      expect(statuses).toEqual([401, 401, 401, 401, 401, 429])
      expect((await send(write(user), 'right', device)).status).toBe(200)
      expect((await send(write(newAccount()), 'wrong', device)).status).toBe(401)
      expect((await send(write(user.toUpperCase()), 'wrong', device)).status).toBe(429)
    })

    test.each([
      ['in WordPress', (user: string) => `${user.slice(0, 2)}&x;${user.slice(2)}`],
      ['in MySQL', (user: string) => `\u{1d4b6}${user.slice(1)}`],
    ])(
      'an owner whose name equals that of another account %s signs in while strangers guess both',
      async (_, nameOf) => {
        const other = newAccount()
        const user = nameOf(other)
        const device = deviceOf(await send(forms.JSON(user), 'right'))
        for (const name of [user, other]) for (let i = 0; i < 6; i++) await send(forms.JSON(name), 'wrong')
        for (const name of [user, other]) expect((await send(forms.JSON(name), 'right')).status).toBe(429)
        const known = await send(forms.JSON(user), 'right', device)
        expect([known.status, deviceOf(known)]).toEqual([200, expect.stringMatching(/^member=./)])
      },
    )

    test('a device of one account of a batch is no device of the others', async () => {
      const [mine, yours] = [newAccount(), newAccount()]
      const device = deviceOf(await send(forms.JSON(mine), 'right'))
      const batch = ['application/json', JSON.stringify([{ email: mine }, { email: yours }])]
      const signedIn = await send(batch, 'right', device)
      expect(deviceOf(signedIn)).toBe('')
      // The batch that has worked counts too, as its status does not say so.
      for (let i = 0; i < 4; i++) expect((await send(batch, 'wrong', device)).status).toBe(401)
      expect((await send(forms.JSON(yours), 'wrong', device)).status).toBe(429)
      expect((await send(forms.JSON(mine), 'wrong')).status).toBe(401)
    })

    test.each([
      ['two accounts', ['application/json', '{"email":"a-0@example.com","email":"b-0@example.com"}']],
      [
        'one account in two spellings',
        ['application/json', '{"email":"c-0@example.com","email":"C-0@example.com"}'],
      ],
      ['a body that cannot be read', ['application/json', '{"email":"d-0@example.com"']],
      ['a body without an account', ['application/json', '{}']],
    ])('%s: nobody gets a device', async (_, body) => {
      expect(deviceOf(await send(body, 'right'))).toBe('')
    })
  })

  test('metrics count devices, and explain tells how a request counts', async () => {
    const user = newAccount()
    const count = async (event: string): Promise<number> => {
      const { body } = await send(first.adminPort, 'GET', '/metrics')
      return parseExposition(body).value('sluice_devices_total', { policy: 'account', event })
    }
    if (place !== 'Redis') {
      const before = {
        issued: await count('issued'),
        known: await count('known'),
        unknown: await count('unknown'),
      }
      const device = deviceIn(await login(user, 'right'))
      await login(user, 'wrong', device)
      await login(newAccount(), 'wrong', device)
      await eventually('the metrics of all workers are there', async () => {
        expect(await count('issued')).toBe(before.issued + 1)
        expect(await count('known')).toBe(before.known + 1)
        expect(await count('unknown')).toBe(before.unknown + 1)
      })
    }
    const explained = async (cookie: string, query = ''): Promise<unknown> => {
      const headers = { host, ...(cookie !== '' && { cookie }) }
      const asked = { method: 'POST', target: `/login?user=${user}${query}`, headers }
      const { body } = await askOperator(first, 'POST', '/api/explain', asked)
      return (body as { rules: { name: string; why?: string }[] }).rules.find(
        ({ name }) => name === 'account',
      )
    }
    const device = deviceIn(await login(user.replace('@', '%40'), 'right'))
    const known = deviceIn(
      await first.send('POST', `/login?user=${user}&password=right`, { headers: { host } }),
    )
    expect(await explained(known)).toMatchObject({
      counts: true,
      why: 'counts by account and device, as the device has signed in to this account',
    })
    expect(await explained(device)).toMatchObject({
      why: 'counts by account, as its device cookie is not valid for this account',
    })
    expect(await explained(known, '&_method=get')).toMatchObject({
      why: 'has no known device, as a header or a field _method may give the request another method, or its body is not read as a whole',
    })
    expect(await explained(known, `&user=${user.toUpperCase()}`)).toMatchObject({
      why: 'has no known device, as the request does not clearly name an account',
    })
    expect(await explained('')).toMatchObject({ why: 'counts by account, as it has no device cookie' })
  })
})

test.each([1, 2])(
  'a reload reads the file of the secret again: both secrets are accepted, then only the new one (%i workers)',
  async (workers) => {
    const backend = await startLogin()
    const folder = makeTemporaryDirectory()
    const [file, secretFile] = [join(folder, 'sluice.yaml'), join(folder, 'secret')]
    const [old, next] = ['old', 'new'].map((name) => `${name}-0123456789-0123456789-0123456789`)
    writeFileSync(file, table)
    writeFileSync(secretFile, `${old}\n`)
    const gateway = await startHosted({
      UPSTREAM_URL: backend.url,
      CONFIG_FILE: file,
      DEVICE_SECRET_FILE: secretFile,
      WORKERS: String(workers),
    })
    const signIn = (cookie = '') =>
      gateway.send('POST', '/login?user=anna&password=right', {
        headers: { host, ...(cookie !== '' && { cookie }) },
      })
    const isKnown = async (cookie: string): Promise<boolean> => {
      const asked = { method: 'POST', target: '/login?user=anna', headers: { host, cookie } }
      const { body } = await askOperator(gateway, 'POST', '/api/explain', asked)
      const { rules } = body as { rules: { why?: string }[] }
      return rules.some(({ why }) => why?.startsWith('counts by account and device') ?? false)
    }
    const reload = async (text: string): Promise<void> => {
      writeFileSync(secretFile, text)
      expect((await askOperator(gateway, 'POST', '/api/reload', {})).body).toMatchObject({
        outcome: 'reloaded',
      })
    }
    const ofOld = deviceIn(await signIn())
    expect(await isKnown(ofOld)).toBe(true)

    await reload(`${next}\n${old}\n`)
    expect(await isKnown(ofOld)).toBe(true)
    const ofNext = deviceIn(await signIn())

    await reload(`${next}\n`)
    expect([await isKnown(ofOld), await isKnown(ofNext)]).toEqual([false, true])
    // The workers agree: once strangers have used up the account's quota, only a known device may sign in.
    for (let i = 0; i < 5; i++) await gateway.send('POST', '/login?user=anna&password=wrong')
    expect([(await signIn(ofOld)).status, (await signIn(ofNext)).status]).toEqual([429, 200])

    writeFileSync(secretFile, 'short')
    expect((await askOperator(gateway, 'POST', '/api/reload', {})).body).toMatchObject({ code: 422 })
    expect((await signIn(ofNext)).status).toBe(200)
  },
)
