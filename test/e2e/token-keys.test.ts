import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { exportJWK, SignJWT, UnsecuredJWT } from 'jose'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { untilMatches } from '../support/wait/until-matches.ts'

const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
let keySet: string

beforeAll(async () => {
  keySet = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'one' }] })
})

function tokenOf(sub: string, claims: object = {}): Promise<string> {
  return new SignJWT({ iss: 'https://issuer.example', aud: 'app', ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: 'one' })
    .setSubject(sub)
    .setIssuedAt()
    .setExpirationTime('10m')
    .sign(privateKey)
}

function tokenSignedWith(secret: Buffer, sub: string): Promise<string> {
  return new SignJWT({ iss: 'https://issuer.example', aud: 'app', sub })
    .setProtectedHeader({ alg: 'HS256' })
    .sign(secret)
}

async function start(jwt: string, store: Record<string, string>): Promise<HostedGateway> {
  const { url } = await startBackend()
  const CONFIG_FILE = join(makeTemporaryDirectory(), 'sluice.yaml')
  writeFileSync(
    CONFIG_FILE,
    `jwt: { ${jwt}, issuer: 'https://issuer.example', audience: app }
limits:
  - { name: by-user, match: GET /user, key: jwt:sub, requests: 2, window: 1h }
  - { name: user-or-address, match: GET /either, key: { first: [jwt:sub, ip] }, requests: 1, window: 1h }
`,
  )
  return startHosted({ UPSTREAM_URL: url, CONFIG_FILE, ...store })
}

let lastClient = 1
const newAddress = (): string => `127.0.0.${++lastClient}`

describe.each<[string, () => Promise<Record<string, string>>]>([
  ['in memory', () => Promise.resolve({})],
  ['in Redis', async () => ({ REDIS_URL: await freshRedis() })],
])('tokens of a key set that is fetched, counters %s', (_, store) => {
  let gateway: HostedGateway

  beforeAll(async () => {
    const issuer = await startBackend((_request, response) => response.end(keySet))
    gateway = await start(`jwksUrl: '${issuer.url}/keys'`, await store())
  })

  const statusWith = async (path: string, from: string, ...lines: string[]): Promise<number> =>
    (
      await gateway.send('GET', path, {
        from,
        headers: lines.length > 0 ? Object.fromEntries([['Authorization', lines]]) : {},
      })
    ).status

  test('count by the claim, whatever the token and the address', async () => {
    const sub = `user-of-${newAddress()}`
    const statuses = []
    for (let i = 0; i < 4; i++)
      statuses.push(await statusWith('/user', newAddress(), `Bearer ${await tokenOf(sub, { i })}`))
    expect(statuses).toEqual([200, 200, 429, 429])
    const token = await tokenOf(sub)
    for (const spelling of [`bearer ${token}`, `BEARER \t ${token} `])
      expect(await statusWith('/user', newAddress(), spelling)).toBe(429)
    expect(await statusWith('/user', newAddress(), `Bearer ${await tokenOf(`${sub}-2`)}`)).toBe(200)
    const client = { 'jwt:sub': sub }
    const asked = { policy: 'by-user', client }
    expect((await askOperator(gateway, 'POST', '/api/clients/inspect', asked)).body).toMatchObject({
      states: [{ used: 2 }],
    })
    await askOperator(gateway, 'POST', '/api/clients/reset', asked)
    expect(await statusWith('/user', newAddress(), `Bearer ${token}`)).toBe(200)
  })

  test('a token that is not verified is ignored', async () => {
    const [from, sub] = [newAddress(), `victim-${newAddress()}`]
    const claims = { iss: 'https://issuer.example', aud: 'app', sub }
    const forged = new UnsecuredJWT(claims).encode()
    const good = await tokenOf(sub)
    const broken = `${good.slice(0, -4)}AAAA`
    const foreign = await tokenOf(sub, { aud: 'other' })
    for (const authorization of [`Bearer ${forged}`, `Bearer ${broken}`, `Bearer ${foreign}`, 'Bearer x'])
      for (let i = 0; i < 3; i++)
        expect(await statusWith('/user', from, authorization), authorization).toBe(200)
    // None of these tokens counts as the user that it names. They count by the address.
    expect(await statusWith('/either', from, `Bearer ${forged}`)).toBe(200)
    expect(await statusWith('/either', from, `Bearer ${broken}`)).toBe(429)
    expect(await statusWith('/either', from)).toBe(429)
    expect(await statusWith('/either', from, `Bearer ${good}`)).toBe(200)
    const metrics = (await send(gateway.adminPort, 'GET', '/metrics')).body
    expect(metrics).toMatch(/^sluice_key_set_loads_total\{outcome="loaded"\} 1$/m)
    expect(metrics).toMatch(/^sluice_tokens_total\{outcome="invalid"\} [1-9]/m)
  })

  test('a token counts in every spelling that some backend accepts', async () => {
    const token = await tokenOf(`spelled-${newAddress()}`)
    const dot = token.lastIndexOf('.')
    const signed = token.slice(0, dot)
    const signature = token.slice(dot + 1)
    const standard = signature.replaceAll('-', '+').replaceAll('_', '/')
    for (const authorization of [`Bearer ${token}`, `Basic ${token}`])
      await statusWith('/user', newAddress(), authorization)
    for (const spelling of [
      `Bearer ${signed}.!~${signature}`,
      `Bearer ${signed}.${signature.slice(0, 20)}!${signature.slice(20)}`,
      `Bearer ${signed}.${signature}==junk`,
      `Bearer ${signed}.${standard}`,
      `Bearer ${token} word`,
      `Bearer ${token}, word`,
      `Foo ${token}`,
      `x\t${token}`,
      `AAAAAAA${token}`,
      `Bearer ${','.repeat(17)}${token}`,
      `Bearer ${token.slice(0, 9)}Bearer ${token.slice(9)}`,
      `Bearer ${token.slice(0, -9)}Bearer ${token.slice(-9)}`,
      `Bearer ${token.slice(0, -9)} bearer ${token.slice(-9)}`,
      `${'x'.repeat(17)}bearer${token}`,
      token,
      `word ${token}`,
      `Bearer junk ${token}`,
    ])
      expect(await statusWith('/user', newAddress(), spelling), spelling).toBe(429)
    expect(await statusWith('/user', newAddress(), `Bearer ${token}`, 'Bearer x')).toBe(429)
    expect(await statusWith('/user', newAddress(), 'Bearer x', `Bearer ${token}`)).toBe(429)
  })

  test('an expired token counts as its client, and several tokens as each of theirs', async () => {
    const [one, other] = [`one-${newAddress()}`, `other-${newAddress()}`]
    const expired = await new SignJWT({
      iss: 'https://issuer.example',
      aud: 'app',
      sub: one,
      exp: 1_000_000_000,
    })
      .setProtectedHeader({ alg: 'ES256', kid: 'one' })
      .sign(privateKey)
    const both = `Bearer ${expired}, Bearer ${await tokenOf(other)}`
    expect(await statusWith('/user', newAddress(), both)).toBe(200)
    expect(await statusWith('/user', newAddress(), both)).toBe(200)
    expect(await statusWith('/user', newAddress(), `Bearer ${await tokenOf(one)}`)).toBe(429)
    expect(await statusWith('/user', newAddress(), `Bearer ${await tokenOf(other)}`)).toBe(429)
  })

  test('more than four tokens are 400', async () => {
    const tokens = await Promise.all(Array.from({ length: 5 }, (_, i) => tokenOf(`of-many-${i}`)))
    expect(await statusWith('/user', newAddress(), `Bearer ${tokens.join(' ')}`)).toBe(400)
    expect(await statusWith('/user', newAddress(), `Bearer ${tokens.slice(1).join(' ')}`)).toBe(200)
  })

  test('a hundred at once count exactly', async () => {
    const sub = `many-${newAddress()}`
    const tokens = await Promise.all(Array.from({ length: 50 }, (_, i) => tokenOf(sub, { i })))
    const statuses = await Promise.all(
      tokens.flatMap((token) => [1, 2].map(() => statusWith('/user', '127.0.0.1', `Bearer ${token}`))),
    )
    expect(statuses.filter((status) => status === 200)).toHaveLength(2)
  })
})

test('without a key set no token counts; once it can be loaded, tokens do', async () => {
  let isThere = false
  const issuer = await startBackend((_request, response) => {
    if (isThere) response.end(keySet)
    else response.writeHead(503).end()
  })
  const gateway = await start(`jwksUrl: '${issuer.url}/keys'`, {})
  await gateway.waitForLine(/.*cannot load the key set \(JWKS\) for tokens.*/)
  const from = newAddress()
  const authorization = `Bearer ${await tokenOf('alice')}`
  const statusOf = async (path: string): Promise<number> =>
    (await gateway.send('GET', path, { from, headers: { authorization } })).status
  for (let i = 0; i < 4; i++) expect(await statusOf('/user')).toBe(200)
  expect([await statusOf('/either'), await statusOf('/either')]).toEqual([200, 429])
  const metrics = (): Promise<string> => send(gateway.adminPort, 'GET', '/metrics').then(({ body }) => body)
  expect(await metrics()).toMatch(/^sluice_tokens_total\{outcome="no-keys"\} 6$/m)
  isThere = true
  await untilMatches(metrics, /^sluice_key_set_loads_total\{outcome="loaded"\} 1$/m)
  expect([await statusOf('/user'), await statusOf('/user'), await statusOf('/user')]).toEqual([200, 200, 429])
})

test.each([
  ['a file', () => ['jwksFile', keySet, (sub: string) => tokenOf(sub)] as const],
  [
    'a shared secret',
    () => {
      const secret = 'a secret of thirty-two bytes, or möre'
      return [
        'secretFile',
        `${secret}\n`,
        (sub: string) => tokenSignedWith(Buffer.from(secret), sub),
      ] as const
    },
  ],
  [
    'a shared secret that is not text',
    () => {
      const secret = Buffer.from(`\xff${'\x80'.repeat(31)}\n`, 'latin1')
      return ['secretFile', secret, (sub: string) => tokenSignedWith(secret, sub)] as const
    },
  ],
])('keys from %s', async (_, make) => {
  const [field, content, token] = make()
  const path = join(makeTemporaryDirectory(), 'keys')
  writeFileSync(path, content)
  const gateway = await start(`${field}: '${path}'`, {})
  const headers = { authorization: `Bearer ${await token('alice')}` }
  const statuses = []
  for (let i = 0; i < 3; i++)
    statuses.push((await gateway.send('GET', '/user', { headers, from: newAddress() })).status)
  expect(statuses).toEqual([200, 200, 429])
})

test('clients with an override count by their tokens too', async () => {
  const { url } = await startBackend()
  const folder = makeTemporaryDirectory()
  const CONFIG_FILE = join(folder, 'sluice.yaml')
  const keys = join(folder, 'keys')
  writeFileSync(keys, keySet)
  writeFileSync(
    CONFIG_FILE,
    `jwt: { jwksFile: '${keys}' }
limits:
  - name: by-user
    match: GET /user
    key: jwt:sub
    requests: 5
    window: 1h
    overrides: [{ clients: { ip: 127.0.0.0/8 }, requests: 2 }]
`,
  )
  const gateway = await startHosted({ UPSTREAM_URL: url, CONFIG_FILE })
  const headers = { authorization: `Bearer ${await tokenOf('alice')}` }
  const statuses = []
  for (let i = 0; i < 3; i++)
    statuses.push((await gateway.send('GET', '/user', { headers, from: newAddress() })).status)
  expect(statuses).toEqual([200, 200, 429])
})

test('keys from a file are read again with a reload', async () => {
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const path = join(makeTemporaryDirectory(), 'keys')
  writeFileSync(path, keySet)
  const gateway = await start(`jwksFile: '${path}'`, {})
  const headers = { authorization: `Bearer ${await tokenOf('alice')}` }
  const left = async (): Promise<unknown> =>
    (await gateway.send('GET', '/user', { headers })).headers['ratelimit']
  expect(await left()).toContain('r=1')
  // The key is revoked, so tokens that it has signed are not valid any more.
  writeFileSync(path, JSON.stringify({ keys: [{ ...(await exportJWK(other.publicKey)), kid: 'one' }] }))
  expect((await askOperator(gateway, 'POST', '/api/reload', {})).body).toMatchObject({ outcome: 'reloaded' })
  expect(await left()).toBeUndefined()
  expect((await askOperator(gateway, 'POST', '/api/reload', {})).body).toMatchObject({ outcome: 'unchanged' })
})

test('the keys stay when only the audience changes, also while the issuer is away', async () => {
  let isThere = true
  const issuer = await startBackend((_request, response) => {
    if (isThere) response.end(keySet)
    else response.writeHead(503).end()
  })
  const { url } = await startBackend()
  const CONFIG_FILE = join(makeTemporaryDirectory(), 'sluice.yaml')
  const write = (audience: string): void =>
    writeFileSync(
      CONFIG_FILE,
      `jwt: { jwksUrl: '${issuer.url}/keys', audience: ${audience} }
limits:
  - { name: by-user, match: GET /user, key: jwt:sub, requests: 2, window: 1h }
`,
    )
  write('app')
  const gateway = await startHosted({ UPSTREAM_URL: url, CONFIG_FILE })
  isThere = false
  write('other')
  expect((await askOperator(gateway, 'POST', '/api/reload', {})).body).toMatchObject({ outcome: 'reloaded' })
  const left = async (aud: string): Promise<unknown> => {
    const headers = { authorization: `Bearer ${await tokenOf('alice', { aud })}` }
    return (await gateway.send('GET', '/user', { headers })).headers['ratelimit']
  }
  expect(await left('app')).toBeUndefined()
  expect(await left('other')).toContain('r=1')
})
