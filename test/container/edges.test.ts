import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { GenericContainer } from 'testcontainers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { send, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { freePort } from '../support/network/ports.ts'
import { requireEngine } from '../support/containers/engine.ts'
import { launchRedisContainer } from '../support/redis/redis-container.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

// nginx and Caddy, configured as docs/behind-an-edge.md describes, ask three replicas. Each client is one loopback address.

const nginxImage = process.env['NGINX_IMAGE'] || 'nginx:1'
const caddyImage = process.env['CADDY_IMAGE'] || 'caddy:2'
const page = readFileSync('docs/behind-an-edge.md', 'utf8')
const table = `
limits:
  - { name: login, match: POST /login, requests: 5, window: 15m }
  - { name: small, match: GET /small, requests: 2, window: 15m }
`

let replicas: GatewayProcess[]
let backend: Server
let backendUrl: string
let redis: Awaited<ReturnType<typeof launchRedisContainer>>
let forwarded = 0

beforeAll(async () => {
  redis = await launchRedisContainer(await requireEngine())
  // The backend must not refuse requests that the proxies pass on.
  backend = createServer({ maxHeaderSize: 65_536 }, (request, response) => {
    forwarded++
    request.resume().on('end', () => response.end('from the backend'))
  })
  await once(backend.listen(0, '127.0.0.1'), 'listening')
  backendUrl = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`
  const env = {
    UPSTREAM_URL: backendUrl,
    CONFIG_FILE: writeConfigFile(table),
    DECISIONS_PORT: '0',
    TRUSTED_PROXIES: '127.0.0.1',
    REDIS_URL: redis.url,
  }
  replicas = await Promise.all([startGateway(env), startGateway(env), startGateway(env)])
})

afterAll(async () => {
  backend.close()
  backend.closeAllConnections()
  await redis.stop()
})

/** The configuration from the page, with the addresses of this test. */
function snippet(language: string): string {
  const [, text = ''] = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(page) ?? []
  return text
}

const addresses = (): string[] => replicas.map(({ decisionsPort }) => `127.0.0.1:${decisionsPort}`)

type Edge = { readonly port: number; stop(): Promise<unknown> }

async function startNginx(): Promise<Edge> {
  const port = await freePort()
  const servers = addresses().map((address) => `server ${address};`)
  const site = snippet('nginx')
    .replace('server sluice:8081;', servers.join(' '))
    .replace('listen 80;', `listen 127.0.0.1:${port};`)
    .replace('http://app:3000', backendUrl)
  const config = `events {}\nhttp {\naccess_log off;\n${site}\n}\n`
  return start(nginxImage, [{ content: config, target: '/etc/nginx/nginx.conf' }], port)
}

async function startCaddy(): Promise<Edge> {
  const port = await freePort()
  const site = snippet('caddyfile')
    .replace('app.example.com', `http://127.0.0.1:${port}, http://app.example.com:${port}`)
    .replace('sluice:8081', addresses().join(' '))
    .replace('app:3000', backendUrl.replace('http://', ''))
  const config = `{\n\tadmin off\n\tauto_https off\n}\n${site}`
  return start(caddyImage, [{ content: config, target: '/etc/caddy/Caddyfile' }], port)
}

async function start(
  image: string,
  files: { readonly content: string; readonly target: string }[],
  port: number,
): Promise<Edge> {
  const container = await new GenericContainer(image)
    .withCopyContentToContainer(files)
    .withNetworkMode('host')
    .start()
  await eventually('the gateway answers behind the router', async () =>
    expect((await send(port, 'GET', '/')).status).toBe(200),
  )
  return { port, stop: () => container.stop() }
}

/** The responses to some consecutive requests, each sent to the next replica if there are several. */
async function sequence(ports: readonly number[], from: string): Promise<string[]> {
  const seen: string[] = []
  for (const target of ['POST /login', 'GET /small', 'GET /free'])
    for (let sent = 0; sent < 7; sent++) {
      const [method = '', path = ''] = target.split(' ')
      const port = ports[seen.length % ports.length] ?? 0
      const { status, headers, body } = await send(port, method, path, {
        from,
        ...(method === 'POST' && { body: 'content' }),
      })
      const limits =
        status === 429 ? [headers['ratelimit-policy'], headers['retry-after'] !== undefined, body] : []
      seen.push([target, status, ...limits].join(' '))
    }
  return seen
}

describe.each([
  ['nginx', startNginx],
  ['Caddy', startCaddy],
] as const)('%s', (name, startEdge) => {
  let edge: Edge | undefined
  const portOf = (): number => edge?.port ?? 0
  const from = (last: number): string => `127.0.${name === 'nginx' ? 3 : 4}.${last}`

  beforeAll(async () => {
    edge = await startEdge()
  })
  afterAll(() => edge?.stop())

  test('enforces the same limits as when forwarding, over three replicas', async () => {
    const ports = replicas.map(({ port }) => port)
    const before = forwarded
    const expected = await sequence(ports, from(1))
    const passed = forwarded - before
    expect(expected.filter((line) => line.includes('429'))).toHaveLength(7)
    expect(await sequence([portOf()], from(2))).toEqual(expected)
    expect(forwarded - before).toBe(2 * passed)
  })

  test('exactly the quota of many requests at once passes', async () => {
    const replies = await Promise.all(
      Array.from({ length: 60 }, () => send(portOf(), 'POST', '/login', { from: from(3), body: 'x' })),
    )
    const statuses = replies.map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array<number>(5).fill(200), ...Array<number>(55).fill(429)])
  })

  test.each(['//login', '/./login', '/%6cogin', '/LOGIN', '/login/', '/login;x', '/a/../login'])(
    '%j is no way around the limit',
    async (path) => {
      const client = from(10 + path.length + path.charCodeAt(1))
      for (let sent = 0; sent < 5; sent++) await send(portOf(), 'POST', '/login', { from: client })
      expect((await send(portOf(), 'POST', path, { from: client })).status).toBe(429)
    },
  )

  test('headers in which a client claims another request or address are ignored', async () => {
    const headers = {
      'X-Forwarded-For': '9.9.9.9',
      'X-Forwarded-Method': 'GET',
      'X-Forwarded-Uri': '/free',
      'X-Forwarded-Host': 'b',
      'X-Original-Method': 'GET',
      'X-Original-URI': '/free',
    }
    const client = from(5)
    const statuses: number[] = []
    for (let sent = 0; sent < 6; sent++)
      statuses.push((await send(portOf(), 'POST', '/login', { from: client, headers })).status)
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
  })

  test('20 KB of headers, a large body and a refused target are not an error of the server', async () => {
    const client = from(6)
    const long = { 'x-a': 'a'.repeat(7_000), 'x-b': 'b'.repeat(7_000), 'x-c': 'c'.repeat(6_000) }
    expect((await send(portOf(), 'GET', '/free', { from: client, headers: long })).status).toBe(200)
    const body = Buffer.alloc(500_000, 'x')
    expect((await send(portOf(), 'POST', '/free', { from: client, body })).status).toBe(200)
    expect((await send(portOf(), 'GET', '/a%01b', { from: client })).status).toBe(400)
  })
})

test('nginx refuses with 503 where no replica answers', async () => {
  const edge = await startNginx()
  try {
    await Promise.all(replicas.map(({ process }) => process.stop()))
    const { status, headers } = await send(edge.port, 'GET', '/free', { from: '127.0.3.99' })
    expect([status, headers['retry-after']]).toEqual([503, '1'])
  } finally {
    await edge.stop()
  }
})
