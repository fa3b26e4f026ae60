import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { startBackend, startRawBackend, type Backend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { CLOSED_PORT } from '../support/network/ports.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const named = (name: string): Promise<Backend> =>
  startBackend((request, response) => request.resume().on('end', () => response.end(name)))

async function start(yaml: string, env: Record<string, string> = {}): Promise<HostedGateway> {
  return startHosted({ CONFIG_FILE: writeConfigFile(yaml), RATE_LIMITING_DISABLED: '1', ...env })
}

/** A backend that holds its responses to all requests that arrive before `stopHolding`. */
async function startHeld(name: string) {
  const held: (() => void)[] = []
  let isHolding = true
  let answered = 0
  const backend = await startBackend((request, response) => {
    response.once('close', () => (answered += 1))
    const answer = (): void => void request.resume().on('end', () => response.end(name))
    if (isHolding) held.push(answer)
    else answer()
  })
  return {
    url: backend.url,
    seen: backend.seen,
    hasAnswered: () => answered === backend.seen.length,
    stopHolding: () => void (isHolding = false),
    release() {
      for (const answer of held) answer()
    },
  }
}

async function bodies({ send }: HostedGateway, requests: number): Promise<string[]> {
  const found: string[] = []
  for (let i = 0; i < requests; i++) found.push((await send('GET', `/${i}`)).body)
  return found
}

test('requests go to the backend of the first route that matches, under its prefix', async () => {
  const [api, app, rest] = await Promise.all([named('api'), named('app'), named('rest')])
  const yaml = `upstream: ${rest.url}
routes:
  - { name: api, hosts: api.example.com, paths: [/v1/*], upstream: '${api.url}/base' }
  - { name: app, hosts: ['*.example.com'], upstream: ${app.url} }
`
  const gateway = await start(yaml, { ACCESS_LOG: 'true' })
  const ask = async (path: string, host: string): Promise<string> =>
    (await gateway.send('GET', path, { headers: { host } })).body
  expect(await ask('/V1//x/../y', 'api.example.com')).toBe('api')
  expect(api.seen[0]?.url).toBe('/base/V1//y')
  expect(await ask('/v2', 'api.example.com')).toBe('app')
  expect(await ask('/v1', 'example.org')).toBe('rest')
  await gateway.waitForLine(/"path":"\/v2".*"route":"app"/)
  const metrics = await (await fetch(`http://127.0.0.1:${gateway.adminPort}/metrics`)).text()
  for (const upstream of ['api', 'app', 'default'])
    expect(metrics).toContain(`sluice_upstream_duration_seconds_count{upstream="${upstream}"} 1`)
})

test('without upstream, a request that no route matches is answered 404, and counted', async () => {
  const backend = await named('a')
  const yaml = `routes:
  - { name: a, paths: /a, upstream: ${backend.url} }
limits:
  - { name: all, match: '* /*', requests: 1, window: 10m }
`
  const gateway = await startHosted({ CONFIG_FILE: writeConfigFile(yaml) })
  const reply = await gateway.send('GET', '/b')
  expect([reply.status, JSON.parse(reply.body)]).toEqual([404, { code: 404, error: 'Not found' }])
  expect((await gateway.send('GET', '/a')).status).toBe(429)
})

test.each(['least-connections', 'round-robin'])(
  '%s shares requests between equal servers',
  async (balance) => {
    const servers = await Promise.all(['a', 'b', 'c'].map(named))
    const urls = servers.map(({ url }) => url).join(', ')
    const gateway = await start(`routes: [{ name: r, upstream: [${urls}], balance: ${balance} }]`)
    await bodies(gateway, 60)
    for (const { seen } of servers) expect(Math.abs(seen.length - 20)).toBeLessThanOrEqual(5)
  },
)

test('a server that has more to do gets less', async () => {
  const fast = await startHeld('fast')
  const slow = await startHeld('slow')
  const gateway = await start(`routes: [{ name: r, upstream: [${fast.url}, ${slow.url}] }]`)
  const background = [0, 1, 2, 3, 4, 5, 6, 7].map(() => gateway.send('GET', '/'))
  await eventually('all requests have arrived', () => fast.seen.length + slow.seen.length === 8)
  const before = slow.seen.length
  expect(before).toBeGreaterThan(1)
  fast.stopHolding()
  slow.stopHolding()
  fast.release()
  await eventually('the fast backend has answered', () => fast.hasAnswered())
  expect(new Set(await bodies(gateway, 40))).toEqual(new Set(['fast']))
  expect(slow.seen).toHaveLength(before)
  slow.release()
  await Promise.all(background)
})

test('no request fails if one of three servers is dead', async () => {
  const [a, b] = await Promise.all([named('a'), named('b')])
  const gateway = await start(
    `routes: [{ name: r, upstream: [${a.url}, 'http://127.0.0.1:${CLOSED_PORT}', ${b.url}], balance: round-robin }]`,
  )
  expect((await bodies(gateway, 30)).filter((body) => body !== 'a' && body !== 'b')).toEqual([])
  const posted = await gateway.send('POST', '/', { body: 'a body that was not sent yet' })
  expect(posted.status).toBe(200)
})

test('no idempotent request fails if one of three servers hangs, and others hardly wait', async () => {
  const [a, b] = await Promise.all([named('a'), named('b')])
  const hung = await startRawBackend((socket) => void socket.resume())
  const gateway = await start(
    `routes: [{ name: r, upstream: [${hung.url}, ${a.url}, ${b.url}], balance: round-robin }]`,
    // Long enough for the other servers to answer, even on a busy machine.
    { UPSTREAM_TIMEOUT: '1s' },
  )
  const beganAtMs = performance.now()
  expect((await bodies(gateway, 60)).filter((body) => body !== 'a' && body !== 'b')).toEqual([])
  // Three requests until the server was ejected, and one each time that it was tried again: after a second, then after twice as long each
  // time.
  const seconds = (performance.now() - beganAtMs) / 1000
  expect(hung.connections.length).toBeLessThanOrEqual(3 + Math.floor(Math.log2(1 + seconds)))
})

test('a request that is not idempotent, or has a body that was sent, is not sent twice', async () => {
  const other = await named('a')
  const hung = await startRawBackend((socket) => void socket.resume())
  const gateway = await start(
    `routes: [{ name: r, upstream: [${hung.url}, ${other.url}], balance: round-robin }]`,
    { UPSTREAM_TIMEOUT: '200ms' },
  )
  expect((await gateway.send('POST', '/')).status).toBe(504)
  expect(other.seen).toEqual([])
})

test('a reload changes routes; a request to a backend that is gone is finished', async () => {
  let end = (): void => undefined
  const before = await startBackend((_, response) => {
    response.write('begun, ')
    end = () => void response.end('ended')
  })
  const after = await named('after')
  const file = writeConfigFile(`routes: [{ name: r, upstream: ${before.url} }]\n`)
  const gateway = await startHosted({ CONFIG_FILE: file })
  const first = gateway.send('GET', '/')
  await eventually('the request has arrived', () => before.seen.length !== 0)
  writeFileSync(file, `routes: [{ name: r, upstream: ${after.url} }]\n`)
  const routes = { added: [], changed: ['r'], removed: [] }
  expect(await askOperator(gateway, 'POST', '/api/reload', {})).toMatchObject({
    body: { outcome: 'reloaded', routes },
  })
  await gateway.waitForLine(/"added":\[\],"changed":\["r"\],"removed":\[\],"msg":"routes changed"/)
  expect((await gateway.send('GET', '/')).body).toBe('after')
  await sleep(300)
  end()
  expect((await first).body).toBe('begun, ended')
})

test('a WebSocket handshake takes its route', async () => {
  const backend = await startRawBackend((socket) =>
    socket.once('data', (head) => {
      const key = /sec-websocket-key: (\S+)/i.exec(head.toString())?.[1]
      socket.end(`HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nx-key: ${key}\r\n\r\n`)
    }),
  )
  const gateway = await start(`routes: [{ name: r, paths: /ws, upstream: ${backend.url} }]`)
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write(
    'GET /ws HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n' +
      'sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
  )
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString()).toContain('x-key: dGhlIHNhbXBsZSBub25jZQ==')
  socket.destroy()
})

test('explain says which route a request would take', async () => {
  const backend = await named('a')
  const routes = `routes: [{ name: api, paths: [/v1/*], upstream: ${backend.url} }]\n`
  const upstreamOf = async (gateway: HostedGateway, target: string): Promise<unknown> => {
    const { body } = await askOperator(gateway, 'POST', '/api/explain', { method: 'GET', target })
    return (body as { upstream: unknown }).upstream
  }
  const gateway = await start(routes)
  expect(await upstreamOf(gateway, '/V1//x')).toBe('api')
  expect(await upstreamOf(gateway, '/v2')).toBe(null)
  const withUpstream = await start(`upstream: ${backend.url}\n${routes}`)
  expect(await upstreamOf(withUpstream, '/v2')).toBe('default')
  expect(await upstreamOf(await start(`upstream: ${backend.url}`), '/v1')).toBe('default')
})
