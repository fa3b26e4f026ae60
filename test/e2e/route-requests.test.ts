import { copyFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { atEndOfFile } from '../support/run/at-end.ts'
import { fieldLines, startBackend, type Backend } from '../support/http/backend.ts'
import { authorityFile, readPair } from '../support/network/certificates.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { makeTemporaryDirectory, writeConfigFile } from '../support/run/temporary-directory.ts'

async function start(yaml: string, env: Record<string, string> = {}): Promise<HostedGateway> {
  return startHosted({ CONFIG_FILE: writeConfigFile(yaml), ...env })
}

function lastOf({ seen }: Backend): Backend['seen'][number] {
  const last = seen.at(-1)
  if (!last) throw new Error('nothing arrived')
  return last
}

test('stripPrefix removes the prefix, and Location, cookies and X-Forwarded-Prefix have it', async () => {
  const backend = await startBackend((_, response) =>
    response.writeHead(302, { location: '/login?next=/', 'set-cookie': ['a=b; Path=/', 'c=d'] }).end(),
  )
  const gateway = await start(
    `routes: [{ name: r, paths: [/app/*], upstream: '${backend.url}/base', stripPrefix: true }]`,
  )
  const reply = await gateway.send('GET', '/app//x/../y?q=1')
  expect(lastOf(backend).url).toBe('/base//y?q=1')
  expect(fieldLines(lastOf(backend), 'x-forwarded-prefix')).toEqual(['/app'])
  expect([reply.status, reply.headers['location'], reply.headers['set-cookie']]).toEqual([
    302,
    '/app/login?next=/',
    ['a=b; Path=/app', 'c=d'],
  ])
  await gateway.send('GET', '/app')
  expect(lastOf(backend).url).toBe('/base/')
})

test('stripPrefix and a path of upstream apply to WebDAV headers too, and to all URLs in a response', async () => {
  const backend = await startBackend((_, response) =>
    response
      .writeHead(201, {
        ...{ 'content-location': '/b', refresh: '0;url=/c', location: 'x' },
        link: '</d>; rel=next; title="</e>", <https://other.example/f>; rel=up',
      })
      .end(),
  )
  const gateway = await start(
    `routes: [{ name: r, paths: [/dav/*], upstream: '${backend.url}/base', stripPrefix: true, upstreamHost: app.internal }]`,
  )
  const move = (destination: string): ReturnType<HostedGateway['send']> =>
    gateway.send('MOVE', '/dav/a', {
      headers: { host: 'example.com', destination, if: '</dav/a> (<urn:uuid:1>)' },
    })
  const reply = await move('https://example.com/dav/./b%20c')
  expect(fieldLines(lastOf(backend), 'destination')).toEqual(['https://app.internal/base/b%20c'])
  expect(fieldLines(lastOf(backend), 'if')).toEqual(['</base/a> (<urn:uuid:1>)'])
  expect(reply.headers).toMatchObject({
    ...{ 'content-location': '/dav/b', refresh: '0;url=/dav/c', location: 'x' },
    link: '</dav/d>; rel=next; title="</e>", <https://other.example/f>; rel=up',
  })
  const seen = backend.seen.length
  for (const destination of ['https://example.com/other', '/dav/..;/x', '/davx', '/dav/a b'])
    expect((await move(destination)).status, destination).toBe(400)
  expect(backend.seen).toHaveLength(seen)
  await move('https://other.example/dav/x')
  expect(fieldLines(lastOf(backend), 'destination')).toEqual(['https://other.example/dav/x'])
})

test('headers of the file and of the route reach the backend, and no client can send them', async () => {
  const backend = await startBackend()
  const yaml = `
requestHeaders: { X-Script-Name: /all, X-Env: prod }
upstream: ${backend.url}
upstreamHost: upstream
routes: [{ name: r, paths: [/app/*], upstream: '${backend.url}', stripPrefix: true, requestHeaders: { x-script-name: /app, Authorization: Basic eA== } }]`
  const gateway = await start(yaml, { TRUSTED_PROXIES: '127.0.0.1' })
  const headers = {
    ...{ 'x-script-name': '/evil', 'x-env': 'evil', authorization: 'Bearer client', host: 'example.com' },
    destination: 'http://example.com/app/b',
  }
  const seenAt = async (path: string): Promise<readonly string[][]> => {
    await gateway.send('MOVE', path, { headers })
    const names = ['x-script-name', 'x-env', 'authorization', 'host', 'via', 'destination']
    return names.map((name) => fieldLines(lastOf(backend), name))
  }
  const own = new URL(backend.url).host
  expect(await seenAt('/other')).toEqual([
    ['/all'],
    ['prod'],
    [],
    [own],
    ['1.1 sluice'],
    [`http://${own}/app/b`],
  ])
  // An application that knows its prefix removes it by itself.
  expect(await seenAt('/app/x')).toEqual([
    ['/app'],
    ['prod'],
    ['Basic eA=='],
    ['example.com'],
    ['1.1 sluice'],
    ['http://example.com/app/b'],
  ])
})

test('with VIA=0 the backend gets no Via', async () => {
  const backend = await startBackend()
  const gateway = await start(`upstream: ${backend.url}\nvia: false`)
  await gateway.send('GET', '/', { headers: { via: '1.1 other' } })
  expect(fieldLines(lastOf(backend), 'via')).toEqual([])
  expect(fieldLines(lastOf(backend), 'x-forwarded-proto')).toEqual(['http'])
})

test('a changed header takes effect at the next reload, and no connection is opened for it', async () => {
  const backend = await startBackend()
  const file = writeConfigFile(`upstream: ${backend.url}\nrequestHeaders: { X-A: one }`)
  const gateway = await startHosted({ CONFIG_FILE: file })
  await gateway.send('GET', '/')
  writeFileSync(file, `upstream: ${backend.url}\nrequestHeaders: { X-A: two }`)
  await askOperator(gateway, 'POST', '/api/reload', {})
  await gateway.send('GET', '/')
  expect(backend.seen.map((request) => fieldLines(request, 'x-a'))).toEqual([['one'], ['two']])
})

test("a trusted proxy's X-Forwarded-Prefix comes before the removed prefix; a client's is ignored", async () => {
  const backend = await startBackend()
  const yaml = `routes: [{ name: r, paths: [/app/*], upstream: ${backend.url}, stripPrefix: true }]`
  const ask = async (env: Record<string, string>): Promise<string[]> => {
    const gateway = await start(yaml, env)
    await gateway.send('GET', '/app/x', { headers: { 'x-forwarded-prefix': '/outer/' } })
    return fieldLines(lastOf(backend), 'x-forwarded-prefix')
  }
  expect(await ask({})).toEqual(['/app'])
  expect(await ask({ TRUSTED_PROXIES: '127.0.0.1' })).toEqual(['/outer/app'])
})

/*
 * The rule limits /v1/login to one request, and the backend of /v1/* serves it as /login. Each spelling that could reach /login there is
 * either counted by the rule, or refused before it reaches the backend.
 */
test('every spelling of a path counts against its limit', async () => {
  const backend = await startBackend()
  const gateway =
    await start(`routes: [{ name: r, paths: [/v1/*], upstream: ${backend.url}, stripPrefix: true }]
limits: [{ name: login, match: '* /v1/login', requests: 1, window: 10m }]
`)
  expect((await gateway.send('GET', '/v1/login')).status).toBe(200)
  for (const path of [
    '/v1/login',
    '/v1//login/',
    '//v1/login',
    '/v1/%256cogin',
    '/v1//host/login',
    '/v1/login&x',
    '/v1/x%5C..%5clogin',
    '/V1/LOGIN',
    '/%76%31/%6cogin',
    '/v1/a/../login',
    '/v1/%2e%2e/v1/login',
    '/v1/./login;a=b',
    '/v1/login%3Fa',
    '/v1/login%2F',
    '/v1/x%2F..%2Flogin',
    '/v1/x/..;/login',
    '/v1/login%20',
  ])
    expect([path, (await gateway.send('GET', path)).status]).toEqual([path, 429])
  for (const path of ['/v1/..;/v1/logout', '/v1/http://a/logout'])
    expect([path, (await gateway.send('GET', path)).status]).toEqual([path, 400])
  for (const path of ['/v1%2Flogout', '/v1;a/logout', '/a/..;/v1/b'])
    expect([path, (await gateway.send('GET', path)).status]).toEqual([path, 404])
  expect(backend.seen.map(({ url }) => url)).toEqual(['/login'])
})

test('upstreamHost: the Host that the backend sees, and a Location there leads back', async () => {
  const backend = await startBackend((request, response) =>
    response.writeHead(301, { location: `http://${request.headers.host}/x/` }).end(),
  )
  const route = (name: string, host: string): string =>
    `{ name: ${name}, paths: /${name}, upstream: ${backend.url}, upstreamHost: ${host} }`
  const gateway = await start(
    `routes: [${route('keep', 'keep')}, ${route('upstream', 'upstream')}, ${route('name', 'app.provider.example')}]`,
  )
  const ask = async (path: string): Promise<unknown[]> => {
    const { headers } = await gateway.send('GET', path, { headers: { host: 'example.com' } })
    const seen = lastOf(backend)
    return [fieldLines(seen, 'host'), fieldLines(seen, 'x-forwarded-host'), headers['location']]
  }
  expect(await ask('/keep')).toEqual([['example.com'], ['example.com'], 'http://example.com/x/'])
  expect(await ask('/upstream')).toEqual([[`127.0.0.1:${backend.port}`], ['example.com'], '/x/'])
  expect(await ask('/name')).toEqual([['app.provider.example'], ['example.com'], '/x/'])
})

test('upstreamCaFile of a route: its servers are verified with it, and a reload reads it again', async () => {
  const server = createServer(readPair('first'), (_, response) => response.end('secure'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEndOfFile(() => server.close().closeAllConnections())
  const url = `https://localhost:${(server.address() as AddressInfo).port}`
  const caFile = join(makeTemporaryDirectory(), 'ca.pem')
  copyFileSync(join(authorityFile, '../named.pem'), caFile)
  const gateway = await start(
    `routes: [{ name: a, paths: /a, upstream: ${url}, upstreamCaFile: ${authorityFile} },
  { name: b, upstream: ${url}, upstreamCaFile: ${caFile} }]`,
  )
  expect((await gateway.send('GET', '/a')).body).toBe('secure')
  expect((await gateway.send('GET', '/b')).status).toBe(502)
  copyFileSync(authorityFile, caFile)
  expect(await askOperator(gateway, 'POST', '/api/reload', {})).toMatchObject({
    body: { outcome: 'reloaded' },
  })
  expect((await gateway.send('GET', '/b')).body).toBe('secure')
})
