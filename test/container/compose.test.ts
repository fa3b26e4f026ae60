import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { randomInt } from 'node:crypto'
import { GenericContainer } from 'testcontainers'
import { createComposeProject } from '../support/containers/compose.ts'
import { commandsOf } from '../support/run/docs.ts'
import { requireEngine, userIdsOf, type ContainerDetails } from '../support/containers/engine.ts'
import { nodeImage, testImages } from '../support/containers/images.ts'
import { freePort } from '../support/network/ports.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { startLoad } from '../support/load/steady-load.ts'
import { eventually } from '../support/wait/eventually.ts'

const services = ['redis', 'origin', 'gateway', 'balancer'] as const
const limited = '{"code":429,"error":"Too many requests, Please try after a while!"}'

const port = await freePort()
const address = `http://localhost:${port}`
/** A network other than that of a project that already runs on this machine. */
const network = `10.213.${randomInt(100, 250)}`
const engine = await requireEngine()
const project = await createComposeProject({
  GATEWAY_PORT: String(port),
  BALANCING_NETWORK: network,
  SLUICE_GATEWAY_IMAGE: testImages.gateway,
  SLUICE_ORIGIN_IMAGE: testImages.origin,
})
let apiKey: string

beforeAll(async () => {
  await project.run('build')
  await start(3)
})

afterAll(() => project.remove())

async function start(gateways: number): Promise<void> {
  await project.run('up', '--detach', '--scale', `gateway=${gateways}`)
  await allHealthy()
}

async function allContainers(): Promise<ContainerDetails[]> {
  return (await Promise.all(services.map((service) => project.containers(service)))).flat()
}

/** Resolves when every container is healthy and the address answers. Rejects if a container has ended. */
async function allHealthy(): Promise<void> {
  const ended = await eventually(
    'all containers are healthy, or one has ended',
    async () => {
      const containers = await allContainers()
      const endedOne = containers.find(({ State }) => !State.Running)
      if (endedOne) return { name: endedOne.Name }
      expect(containers.map(({ State }) => State.Health?.Status ?? 'healthy')).toEqual(
        containers.map(() => 'healthy'),
      )
      // The balancer has no health check of its own, so the test sends it a request.
      return (await answers()) && { name: undefined }
    },
    { endMs: 240_000 },
  )
  if (ended.name !== undefined)
    throw new Error(`${ended.name} has ended:\n${await project.run('logs', '--tail', '50')}`)
}

function answers(): Promise<boolean> {
  return fetch(`${address}/health`).then(
    ({ ok }) => ok,
    () => false,
  )
}

async function me(key?: string): Promise<number> {
  const response = await fetch(
    `${address}/api/v1/me`,
    key === undefined ? {} : { headers: { 'x-api-key': key } },
  )
  await response.arrayBuffer()
  return response.status
}

/** The number of POST /login requests that each gateway has allowed and refused. */
async function logins(): Promise<{ allowed: number; refused: number }[]> {
  const containers = await project.containers('gateway')
  return Promise.all(
    containers.map(async ({ Id }) => {
      const script = "fetch('http://127.0.0.1:9090/metrics').then((r) => r.text()).then(console.log)"
      const container = engine.container.getById(Id)
      const { output } = await engine.container.exec(container, ['node', '-e', script])
      const scrape = parseExposition(`${output.trim()}\n`)
      const count = (outcome: string): number =>
        scrape.value('sluice_decisions_total', { policy: 'login', outcome })
      return { allowed: count('allowed'), refused: count('refused') }
    }),
  )
}

/** Resolves when the balancer has found each of the three gateways, which shows as a decision by each. */
async function allAreFound(): Promise<void> {
  const before = (await logins()).map(({ allowed, refused }) => allowed + refused)
  const isFound = (): Promise<boolean> =>
    logins().then((now) => now.every(({ allowed, refused }, i) => allowed + refused > (before[i] ?? 0)))
  do
    await Promise.all(
      Array.from({ length: 9 }, () =>
        fetch(`${address}/login`, { method: 'POST', headers: { connection: 'close' } }),
      ),
    )
  while (!(await isFound()))
}

/** The start time of each gateway's process, to identify it. */
async function runningSince(): Promise<string[]> {
  return (await project.containers('gateway')).map(({ Id, State }) => `${Id} ${State.StartedAt}`)
}

async function countedClients(policy: string): Promise<string[]> {
  const keys = await project.run('exec', '-T', 'redis', 'redis-cli', '--scan', '--pattern', `*:${policy}:*`)
  return keys.match(/(?<=\{)[^}]*/g)?.sort() ?? []
}

test('one balancer, one origin, one Redis and three gateways become healthy', async () => {
  const counts = await Promise.all(
    services.map(async (service) => (await project.containers(service)).length),
  )
  expect(counts).toEqual([1, 1, 3, 1])
})

test('no container runs a process as root or can become root', async () => {
  for (const { Id, Name, HostConfig } of await allContainers()) {
    expect(await userIdsOf(engine, Id), Name).not.toContain('0')
    expect(HostConfig, Name).toMatchObject({ ReadonlyRootfs: true, CapDrop: ['ALL'], Privileged: false })
    expect(HostConfig.SecurityOpt).toContain('no-new-privileges:true')
  }
})

test('a key made in the origin’s container is good, and no key is not', async () => {
  const created = await project.run(
    ...['exec', '-T', 'origin', 'node', 'origin/keys.ts', 'create', '--project', 'compose', '--json'],
  )
  apiKey = (JSON.parse(created) as { key: string }).key
  for (let asked = 0; asked < 6; asked++) {
    expect([await me(apiKey), await me(), await me('unknown')]).toEqual([200, 401, 401])
  }
  expect(await project.run('logs', 'origin')).toContain(`${address}/api/v1/me`)
})

test('at one address, 90 POST /login reach all three gateways, and 30 pass', async () => {
  const replies = await Promise.all(
    Array.from({ length: 90 }, async () => {
      const response = await fetch(`${address}/login`, { method: 'POST', headers: { connection: 'close' } })
      return { status: response.status, body: await response.text() }
    }),
  )
  const refused = replies.filter(({ status }) => status === 429)
  expect(replies.length - refused.length).toBe(30)
  expect(new Set(refused.map(({ body }) => body))).toEqual(new Set([limited]))
  const shares = await logins()
  expect(shares.map(({ allowed, refused }) => allowed + refused).every((share) => share > 10)).toBe(true)
  expect(shares.reduce((sum, { allowed }) => sum + allowed, 0)).toBe(30)
  expect(shares.reduce((sum, { refused }) => sum + refused, 0)).toBe(60)
})

// The balancer is the peer of every connection. If its address counted as the client's, all clients would share one limit; if it were
// trusted for more than its PROXY header, each client could claim any address.
test('each client is counted by its own address, whatever headers it sends', async () => {
  const client = await new GenericContainer(nodeImage)
    .withNetworkMode(`${project.name}_balancing`)
    .withCommand(['sleep', '600'])
    .start()
  try {
    const script = `(async () => {
      for (let i = 0; i < 6; i++) {
        const headers = { 'x-forwarded-for': '203.0.113.' + i, connection: 'close' }
        const reply = await fetch('http://balancer:8080/forgot-password', { method: 'POST', headers })
        await reply.text()
        console.log(reply.status)
      }
    })()`
    const { output } = await client.exec(['node', '-e', script])
    expect(output.trim().split('\n')).toEqual(['404', '404', '404', '404', '404', '429'])
    const own = client.getIpAddress(`${project.name}_balancing`)
    expect(own).toMatch(`${network}.`)
    expect(await countedClients('forgot-password')).toEqual([own])
  } finally {
    await client.stop()
  }
  expect((await fetch(`${address}/forgot-password`, { method: 'POST' })).status).toBe(404)
  const clients = await countedClients('forgot-password')
  expect(clients).toHaveLength(2)
  expect(clients).not.toContain(`${network}.2`)
}, 300_000)

test('gateways come and go under load, and no request fails', async () => {
  const load = startLoad(`${address}/health`)
  await start(1)
  await start(3)
  await allAreFound()
  expect(await load.end()).toEqual({ statuses: ['200'], isLong: true })
}, 300_000)

describe('the commands of docs/containers.md, under load', () => {
  test.for([
    [
      'restart the gateways one after the other',
      'for id in $(docker compose ps -q gateway); do\n      docker restart',
    ],
    ['replace the gateways by new ones', 'old=$(docker compose ps -q gateway)'],
  ] as const)('%s, and no request fails', { timeout: 300_000 }, async ([, beginning]) => {
    const before = await runningSince()
    const load = startLoad(`${address}/health`)
    await project.shell(commandsOf('docs/containers.md', beginning))
    await allHealthy()
    await allAreFound()
    expect(await load.end()).toEqual({ statuses: ['200'], isLong: true })
    const after = await runningSince()
    expect(after).toHaveLength(3)
    expect(after.filter((started) => before.includes(started))).toEqual([])
  })
})

test('every counter in Redis has an expiry', async () => {
  const redis = ['exec', '-T', 'redis', 'redis-cli']
  const keys = (await project.run(...redis, '--scan')).trim().split('\n')
  expect(keys.length).toBeGreaterThan(0)
  for (const key of keys) {
    expect(key).toMatch(/^sluice:/)
    expect(Number(await project.run(...redis, 'pttl', key))).toBeGreaterThan(0)
  }
})

test('stopping ends gateways, origin and balancer by themselves, with status 0', async () => {
  await project.run('stop')
  for (const service of ['gateway', 'origin', 'balancer']) {
    for (const { Name, State } of await project.containers(service)) {
      expect({ Name, status: State.ExitCode, killed: State.OOMKilled }).toEqual({
        Name,
        status: 0,
        killed: false,
      })
    }
  }
})

test('keys outlive the containers, and each start is at the same address, with one gateway and with three', async () => {
  for (const gateways of [1, 3]) {
    await project.run('down')
    expect(await allContainers()).toEqual([])
    await start(gateways)
    expect((await project.run('port', 'balancer', '8080')).trim()).toBe(`0.0.0.0:${port}`)
    expect(await project.containers('gateway')).toHaveLength(gateways)
    for (const { NetworkSettings } of await project.containers('gateway'))
      expect(Object.values(NetworkSettings.Ports).filter(Boolean)).toEqual([])
    expect(await me(apiKey)).toBe(200)
  }
}, 300_000)
