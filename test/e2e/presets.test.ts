import { Agent, type RequestListener } from 'node:http'
import { afterAll, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import type { SendOptions } from '../support/gateway/gateway.ts'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// Connections are reused: a new one for each of thousands of requests would take most of the time.
const agent = new Agent({ keepAlive: true })
afterAll(() => agent.destroy())

/** Sends the requests of an application's clients, and counts those that pass before the first 429. */
async function startPreset(name: string, answer?: RequestListener) {
  const backend = await startBackend(answer)
  const gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: writeConfigFile(`preset: ${name}`),
    ...(name === 'account-shield' && { DEVICE_SECRET: 'x'.repeat(40), TRUSTED_PROXIES: 'loopback' }),
  })
  const passed = async (
    method: string,
    path: string | ((sent: number) => string),
    options: SendOptions | ((sent: number) => SendOptions) = {},
  ): Promise<number> => {
    for (let sent = 0; sent <= 1000; sent++) {
      const reply = await gateway.send(method, typeof path === 'string' ? path : path(sent), {
        agent,
        ...(typeof options === 'function' ? options(sent) : options),
      })
      if (reply.status === 429) return sent
    }
    return Infinity
  }
  return { gateway, passed }
}

/** A path, first alone, then with further segments. */
const deeper = (path: string) => (sent: number) => path + '/x'.repeat(sent % 3)

const answerWrongKeys: RequestListener = (request, response) => {
  const key = request.headers['x-api-key'] ?? request.headers.authorization
  response.writeHead(key?.includes('wrong') === true ? 401 : 200)
  response.end()
}

test('formbricks: the rows of its table, and made-up keys', async () => {
  const { gateway, passed } = await startPreset('formbricks', answerWrongKeys)
  const key = { headers: { 'x-api-key': 'good' } }
  // NextAuth ignores further segments.
  expect(await passed('POST', deeper('/api/auth/callback/credentials'))).toBe(40)
  expect(await passed('POST', deeper('/api/auth/callback/token'))).toBe(10)
  expect(await passed('POST', '/api/v1/management/storage', key)).toBe(5)
  expect(await passed('GET', '/api/v1/management/surveys', { headers: { 'x-api-key': 'other' } })).toBe(100)
  expect(await passed('PATCH', '/api/v1/webhooks/w1', key)).toBe(100)
  for (const version of ['v1', 'v2']) {
    const client = `/api/${version}/client/workspace`
    expect(await passed('POST', `${client}/responses`)).toBe(100)
    expect(await passed('PUT', (sent) => `${client}/responses/r${sent}`)).toBe(100)
    expect(await passed('POST', `${client}/displays`)).toBe(100)
    expect(await passed('POST', `${client}/storage`)).toBe(5)
  }
  expect(await passed('GET', '/api/v1/client/workspace/environment')).toBe(100)
  expect(await passed('POST', '/api/v1/client/workspace/user')).toBe(100)
  for (const access of ['public', 'private'])
    expect(await passed('DELETE', (sent) => `/storage/workspace/${access}/${sent}.png`, key)).toBe(5)
  // A session has no key. The application itself limits /me, its health check and its preflights.
  expect((await gateway.send('GET', '/api/v1/management/surveys')).headers['ratelimit']).not.toContain(
    '"formbricks-management"',
  )
  for (const [method, path] of [
    ['GET', '/api/v1/client/og'],
    ['GET', '/api/v2/health'],
    ['OPTIONS', '/api/v1/client/workspace/responses'],
  ] as const)
    expect((await gateway.send(method, path)).headers['ratelimit']).toBeUndefined()
  const made = (sent: number): SendOptions => ({
    from: '127.0.0.9',
    headers: { 'x-api-key': `wrong-${sent}` },
  })
  expect(await passed('GET', '/api/v1/management/surveys', made)).toBe(100)
  expect(await passed('DELETE', '/storage/workspace/public/a.png', made)).toBe(5)
})

test('account-shield: guesses at an account from many addresses, and from one network', async () => {
  const { gateway, passed } = await startPreset('account-shield', (request, response) => {
    const isRight = request.headers['x-test'] === 'right'
    const isForm = request.url === '/accounts/login' || request.url === '/wp-login.php'
    const isNextAuth = request.url?.startsWith('/api/auth/callback/credentials') === true
    response.writeHead(isNextAuth ? 200 : isForm ? (isRight ? 302 : 200) : isRight ? 303 : 422)
    response.end()
  })
  let network = 0
  const guess = (type: 'json' | 'form', fields: Record<string, unknown>, more = {}): SendOptions => ({
    headers: {
      'content-type': type === 'json' ? 'application/json' : 'application/x-www-form-urlencoded',
      'x-forwarded-for': `198.${18 + Math.floor(++network / 256)}.${network % 256}.1`,
      ...more,
    },
    body:
      type === 'json'
        ? JSON.stringify(fields)
        : new URLSearchParams(fields as Record<string, string>).toString(),
  })
  const right = { 'x-test': 'right' }
  const forms: [string, (name: string) => Record<string, string>][] = [
    ['/login', (name: string) => ({ email: name, password: 'x' })],
    ['/api/auth/login', (name: string) => ({ username: name, password: 'x' })],
    // better-auth
    ['/api/auth/sign-in/email', (name: string) => ({ email: name, password: 'x' })],
    ['/users/sign_in', (name: string) => ({ 'user[email]': name, 'user[password]': 'x' })],
    ['/accounts/login', (name: string) => ({ username: name, password: 'x' })],
  ]
  for (const [at, [path, fields]] of forms.entries()) {
    const owner = fields(`owner-${at}@example.com`)
    const signedIn = await gateway.send('POST', path, guess('form', owner, right))
    const cookie = signedIn.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
    expect([path, cookie]).toEqual([path, expect.stringMatching(/^sluice_device=/)])
    expect(await passed('POST', path, () => guess('form', owner))).toBe(5)
    const known = await gateway.send('POST', path, guess('form', owner, { ...right, cookie }))
    expect(known.status).not.toBe(429)
  }
  // WordPress handles other forms on the same path like a sign-in.
  const wordpress = { log: 'admin', pwd: 'x', action: 'register' }
  const registered = await gateway.send('POST', '/wp-login.php', guess('form', wordpress, right))
  expect([registered.status, registered.headers['set-cookie']]).toEqual([302, undefined])
  expect(await passed('POST', '/wp-login.php', () => guess('form', wordpress))).toBe(5)
  // NextAuth answers 200 if its token is missing, and Auth.js answers 200 to a wrong password.
  const nextauth = { email: 'victim@example.com', password: 'x', json: 'true' }
  const answered = await gateway.send(
    'POST',
    '/api/auth/callback/credentials',
    guess('form', nextauth, right),
  )
  expect([answered.status, answered.headers['set-cookie']]).toEqual([200, undefined])
  expect(await passed('POST', deeper('/api/auth/callback/credentials'), () => guess('form', nextauth))).toBe(
    4,
  )
  // One guess for each account, from one network or from one address.
  const spray = (address: (sent: number) => string) => (sent: number) =>
    guess('json', { email: `sprayed-${++network}-${sent}` }, { 'x-forwarded-for': address(sent) })
  expect(
    await passed(
      'POST',
      '/login',
      spray((sent) => `203.0.113.${sent % 250}`),
    ),
  ).toBe(100)
  expect(
    await passed(
      'POST',
      '/login',
      spray(() => '192.0.2.1'),
    ),
  ).toBe(30)
  expect((await gateway.send('POST', '/login', guess('json', { email: 'other' }, right))).status).toBe(303)
  for (const path of ['/signup', '/forgot-password'])
    expect(await passed('POST', path, () => guess('json', { email: 'person@example.com' }))).toBe(5)
})

test('wordpress: guesses, logins, xmlrpc.php, users, admin-ajax.php and search', async () => {
  const { gateway, passed } = await startPreset('wordpress', (request, response) => {
    const isRight = request.headers['x-test'] === 'right'
    response.writeHead(isRight ? 302 : 200)
    response.end()
  })
  expect(await passed('POST', '/wp-login.php')).toBe(4)
  expect(await passed('POST', '/wp-login.php', { from: '127.0.0.9', headers: { 'x-test': 'right' } })).toBe(
    30,
  )
  expect(await passed('POST', '/xmlrpc.php')).toBe(10)
  expect(await passed('GET', (sent) => `/wp-json/wp/v2/users/${sent}`)).toBe(30)
  const overridden = ['POST', 'PUT', 'OPTIONS']
  for (const method of overridden)
    expect(await passed(method, '/wp-json/wp/v2/users?_method=GET'), method).toBe(0)
  expect(await passed('POST', '/wp-admin/admin-ajax.php')).toBe(300)
  expect(await passed('POST', '/wp-comments-post.php')).toBe(10)
  expect(await passed('GET', (sent) => `/search/term${sent}/`)).toBe(30)
  for (const method of overridden)
    expect(await passed(method, '/wp-json/wp/v2/search?search=a&_method=GET'), method).toBe(0)
  expect(await passed('POST', (sent) => `/${sent}?s=term`)).toBe(30)
  expect(await passed('GET', (sent) => `/${sent}?rest_route=/wp/v2/users`)).toBe(300)
  expect(await passed('POST', '/index.php?rest_route=/wp/v2/search')).toBe(0)
  expect(await passed('POST', '/', { from: '127.0.0.9' })).toBe(120)
  expect((await gateway.send('GET', '/2026/01/a-post/')).headers['ratelimit']).toBeUndefined()
})

const answerTests: RequestListener = (request, response) => {
  response.writeHead(Number(request.headers['x-test'] ?? 200))
  response.end()
}
/** Options of a request that the backend answers with this status. */
const answered = (status: number, from = '127.0.0.1'): SendOptions => ({
  from,
  headers: { 'x-test': String(status) },
})

test('grafana: guesses, logins, forgotten passwords, wrong tokens and rendered images', async () => {
  const { gateway, passed } = await startPreset('grafana', answerTests)
  expect(await passed('POST', '/login', answered(401))).toBe(5)
  expect(await passed('POST', '/login', answered(200, '127.0.0.9'))).toBe(30)
  expect(await passed('POST', '/api/user/password/send-reset-email')).toBe(5)
  expect(await passed('GET', (sent) => `/api/dashboards/uid/${sent}`, answered(401))).toBe(300)
  const { headers } = await gateway.send('GET', '/render/d-solo/1')
  expect(headers['ratelimit-policy']).toContain('"grafana-render"')
  expect((await gateway.send('GET', '/d/1')).headers['ratelimit']).toBeUndefined()
})

test('mediawiki: guesses, forms, forgotten passwords, accounts and the API', async () => {
  const { gateway, passed } = await startPreset('mediawiki', answerTests)
  const login = '/wiki/Special:UserLogin'
  expect(await passed('POST', login, answered(200))).toBe(5)
  expect(await passed('POST', '/w/index.php/special:userLogin', answered(200, '127.0.0.8'))).toBe(5)
  // MediaWiki takes the rest of the path as a parameter of the special page.
  const others = ['/wiki/Special:UserLogin/x', '/wiki/Special:Login', '/index.php/Special:Login/x/y']
  for (const [index, path] of others.entries())
    expect(await passed('POST', path, answered(200, `127.0.3.${index + 1}`)), path).toBe(5)
  // It reads all of these titles as Special:UserLogin.
  const titles = ['Special:_UserLogin', 'Special:UserLogin_', 'Special%20:UserLogin', ':Special:UserLogin']
  const paths = [...titles.map((title) => `/wiki/${title}`), '/w/?title=Special:UserLogin']
  const respelled = (sent: number): string => paths[sent % paths.length] ?? ''
  expect(await passed('POST', respelled, answered(302, '127.0.0.11'))).toBe(90)
  expect((await gateway.send('POST', login, answered(302, '127.0.0.9'))).status).toBe(302)
  expect(await passed('POST', '/w/index.php?title=A&action=submit', answered(302, '127.0.0.10'))).toBe(90)
  expect(await passed('POST', '/wiki/Special:PasswordReset', answered(302))).toBe(5)
  expect(await passed('POST', '/wiki/Special:CreateAccount', answered(302))).toBe(30)
  expect(await passed('POST', '/w/api.php')).toBe(600)
  expect((await gateway.send('GET', '/wiki/Main_Page')).headers['ratelimit']).toBeUndefined()
})

test('docker-registry: pulls of images with any name, wrong credentials and the catalogue', async () => {
  const { gateway, passed } = await startPreset('docker-registry', answerTests)
  for (const [index, image] of ['image', 'library/image', 'a/b/image', 'a/b/c/image'].entries()) {
    const from = `127.0.2.${index + 1}`
    expect(await passed('GET', (sent) => `/v2/${image}/manifests/${sent}`, { from }), image).toBe(100)
  }
  expect(await passed('GET', '/v2/', answered(401, '127.0.0.9'))).toBe(300)
  expect(await passed('GET', '/v2/_catalog')).toBe(10)
  for (const [method, path] of [
    ['GET', 'blobs/sha256:1'],
    ['HEAD', 'manifests/latest'],
  ] as const) {
    const { headers } = await gateway.send(method, `/v2/library/image/${path}`, { from: '127.0.0.10' })
    expect(headers['ratelimit'], method).not.toContain('"registry-pulls"')
  }
})

test('django-admin: guesses, logins, passwords and all else', async () => {
  const { gateway, passed } = await startPreset('django-admin', answerTests)
  expect(await passed('POST', '/admin/login/?next=/admin/', answered(200))).toBe(3)
  expect(await passed('POST', '/admin/login/', answered(302, '127.0.0.9'))).toBe(30)
  expect(await passed('POST', '/admin/password_change/', answered(302, '127.0.0.10'))).toBe(5)
  expect(await passed('GET', (sent) => `/admin/auth/user/${sent}/`, answered(200, '127.0.0.11'))).toBe(300)
  expect((await gateway.send('GET', '/')).headers['ratelimit']).toBeUndefined()
})

test('login-protection: failures, then all attempts', async () => {
  const { passed } = await startPreset('login-protection', (request, response) => {
    response.writeHead(request.headers['x-test'] === 'right' ? 200 : 401)
    response.end()
  })
  for (const path of [
    '/login',
    '/users/sign_in',
    '/api/auth/sign-in/email',
    '/api/auth/callback/credentials',
  ])
    expect(await passed('POST', path, { from: `127.0.1.${path.length}` })).toBe(5)
  expect(await passed('POST', deeper('/api/auth/callback/credentials'), { from: '127.0.1.1' })).toBe(5)
  expect(await passed('POST', '/login', { headers: { 'x-test': 'right' } })).toBe(30)
  expect(await passed('POST', '/signup')).toBe(30)
  expect(await passed('POST', '/verify-email')).toBe(10)
  expect(await passed('POST', '/users/password')).toBe(5)
})

/** Any status of an error, as `Accept`, `?format=xml` or a field that is a list makes of a wrong password in Rails, Spring or WordPress. */
const asOtherError = (sent: number): string => String([406, 500, 415, 502][sent % 4])

test.each([
  ['login-protection', '/login', 5],
  ['login-protection', '/sessions', 5],
  ['wordpress', '/wp-login.php', 4],
  ['django-admin', '/admin/login', 3],
  ['grafana', '/login', 5],
  ['mediawiki', '/wiki/Special:UserLogin', 5],
])(
  '%s: wrong passwords for %s count whatever error a client makes of their status',
  async (name, path, max) => {
    const { passed } = await startPreset(name, answerTests)
    expect(await passed('POST', path, (sent) => ({ headers: { 'x-test': asOtherError(sent) } }))).toBe(max)
  },
)

test('account-shield: wrong passwords count whatever error a client makes of their status', async () => {
  const { passed } = await startPreset('account-shield', answerTests)
  for (const path of ['/login', '/sessions', '/accounts/login', '/wp-login.php']) {
    const guess = (sent: number): SendOptions => ({
      headers: {
        'content-type': 'application/json',
        'x-forwarded-for': `198.18.${sent}.1`,
        'x-test': asOtherError(sent),
      },
      body: JSON.stringify({ username: 'owner', password: 'x' }),
    })
    expect(await passed('POST', path, guess), path).toBe(5)
  }
})

test('llm-gateway: tokens that responses name, by key, and wrong keys by address', async () => {
  const { passed } = await startPreset('llm-gateway', (request, response) => {
    if (request.headers.authorization?.includes('wrong') === true) response.writeHead(401).end()
    else {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ usage: { total_tokens: 20_000, output_tokens: 10_000 } }))
    }
  })
  const bearer = (key: string): SendOptions => ({ headers: { authorization: `Bearer ${key}` } })
  const json = { body: '{"model":"m"}' }
  expect(await passed('POST', '/v1/chat/completions', { ...bearer('a'), ...json })).toBe(5)
  expect(await passed('POST', '/v1/responses', { ...bearer('a'), ...json })).toBe(0)
  expect(await passed('POST', '/v1/chat/completions', { ...bearer('b'), ...json })).toBe(5)
  expect(await passed('POST', '/v1/messages', { headers: { 'x-api-key': 'a' }, ...json })).toBe(5)
  expect(await passed('GET', '/v1/models', (sent) => bearer(`wrong-${sent}`))).toBe(20)
})

test('public-api: writes by key, all by address, wrong keys', async () => {
  const { passed } = await startPreset('public-api', answerWrongKeys)
  const key = (name: string): SendOptions => ({ headers: { 'x-api-key': name } })
  expect(await passed('POST', '/api/items', key('a'))).toBe(80)
  expect(
    await passed('GET', '/api/items', (sent) => ({ ...key(`made-up-${sent}`), from: '127.0.0.8' })),
  ).toBe(900)
  expect(await passed('GET', '/api/items', (sent) => ({ ...key(`wrong-${sent}`), from: '127.0.0.9' }))).toBe(
    30,
  )
})

test('sluice presets lists them, and shows one', async () => {
  const list = await runHosted(['presets', '--json'])
  expect(list.status).toBe(0)
  expect(JSON.parse(list.stdout)).toContainEqual({
    name: 'wordpress',
    description: expect.any(String) as string,
    rules: 10,
  })
  expect((await runHosted(['presets'])).stdout).toMatch(/^formbricks +20 +/m)
  expect((await runHosted(['presets', 'wordpress'])).stdout).toContain('POST /wp-login.php')
  const shown = JSON.parse((await runHosted(['presets', 'wordpress', '--json'])).stdout) as {
    limits: object[]
  }
  expect(shown.limits[0]).toMatchObject({
    name: 'wordpress-login-failures',
    source: expect.any(String) as string,
  })
  const wrong = await runHosted(['presets', 'wordpres'])
  expect(wrong).toMatchObject({ status: 2 })
  expect(wrong.stderr).toContain('did you mean wordpress?')
})

test('sluice explain knows the rules of a preset', async () => {
  const config = writeConfigFile('preset: wordpress')
  const { stdout } = await runHosted(['explain', 'POST', '/wp-login.php', '--config', config])
  expect(stdout).toContain('wordpress-login-failures')
})
