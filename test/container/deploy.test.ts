import { randomInt } from 'node:crypto'
import { chmodSync, renameSync, writeFileSync } from 'node:fs'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import { GenericContainer, Network, type StartedNetwork, type StartedTestContainer } from 'testcontainers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createComposeProject, type ComposeProject } from '../support/containers/compose.ts'
import { commandsOf } from '../support/run/docs.ts'
import { send } from '../support/gateway/gateway.ts'
import { buildImage, nodeImage, testImages } from '../support/containers/images.ts'
import { freePort } from '../support/network/ports.ts'
import { startLoad } from '../support/load/steady-load.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

// The files of deploy/compose/ in front of a service on another network, as docs/containers.md describes.

/** Responds with the client address that it receives. */
const backend = `require('node:http')
  .createServer((request, response) => response.end(request.headers['x-forwarded-for']))
  .listen(3000)`

let network: StartedNetwork
let app: StartedTestContainer
/** The project's own Redis. It also has the names that a balancer, an edge and a gateway of the project would have. */
let theirRedis: StartedTestContainer

beforeAll(async () => {
  network = await new Network().start()
  app = await new GenericContainer(nodeImage)
    .withNetwork(network)
    .withNetworkAliases('app')
    .withCommand(['node', '-e', backend])
    .start()
  theirRedis = await new GenericContainer(process.env['REDIS_IMAGE'] ?? 'redis:8')
    .withNetwork(network)
    .withNetworkAliases('redis', 'gateway', 'balancer', 'caddy')
    .withCommand(['redis-server', '--protected-mode', 'no'])
    .start()
  await buildImage('gateway')
})

afterAll(async () => {
  await app.stop()
  await theirRedis.stop()
  await network.stop()
})

function makeConfigFolder(): string {
  const folder = makeTemporaryDirectory()
  // Readable for the container's user.
  chmodSync(folder, 0o755)
  return folder
}

async function withProject(
  file: string,
  env: Record<string, string>,
  use: (project: ComposeProject) => Promise<void>,
): Promise<void> {
  const project = await createComposeProject({
    COMPOSE_FILE: `deploy/compose/${file}`,
    SLUICE_GATEWAY_IMAGE: testImages.gateway,
    SLUICE_CONFIG: makeConfigFolder(),
    PROJECT_NETWORK: network.getName(),
    UPSTREAM_URL: 'http://app:3000',
    ...env,
  })
  try {
    await use(project)
  } finally {
    await project.remove()
  }
}

/** Time for the containers of a dozen services to start on a busy machine. */
const starting = { endMs: 240_000 }

/** Resolves when GET / returns 200. */
function isServed(port: number): Promise<void> {
  return eventually(
    'the gateway answers',
    async () => expect((await send(port, 'GET', '/')).status).toBe(200),
    starting,
  )
}

function allHealthy(project: ComposeProject, count: number): Promise<void> {
  return eventually(
    'all containers are healthy',
    async () => {
      const containers = await project.containers('sluice-gateway')
      const states = containers.map(({ State }) => State.Health?.Status)
      expect(states).toEqual(Array<string>(count).fill('healthy'))
    },
    starting,
  )
}

async function statuses(port: number, method: string, path: string, count: number): Promise<number[]> {
  const seen: number[] = []
  for (let sent = 0; sent < count; sent++) seen.push((await send(port, method, path)).status)
  return seen
}

test('two commands put Sluice before a project, and a table that comes later takes effect', async () => {
  const [port, config] = [await freePort(), makeConfigFolder()]
  const env = { GATEWAY_PORT: String(port), SLUICE_CONFIG: config }
  await withProject('before-my-project.yml', env, async (project) => {
    const commands = commandsOf('docs/containers.md', 'docker build --target gateway --tag sluice-gateway')
    expect(commands.split('\n')).toHaveLength(2)
    await project.shell(
      commands
        .replace('--tag sluice-gateway', `--tag ${testImages.gateway}`)
        .replace('my-project_default', network.getName())
        .replace('--project-name sluice ', ''),
    )
    await isServed(port)
    expect(await statuses(port, 'POST', '/forgot-password', 6)).toEqual([200, 200, 200, 200, 200, 429])

    writeFileSync(join(config, 'new'), 'limits: [{ name: own, match: GET /own, requests: 2, window: 1h }]\n')
    renameSync(join(config, 'new'), join(config, 'sluice.yaml'))
    await eventually(
      'the changed table is in effect',
      async () => expect((await send(port, 'GET', '/own')).status).toBe(429),
      starting,
    )
    expect((await send(port, 'POST', '/forgot-password')).status).toBe(200)
  })
}, 300_000)

test('with HAProxy, three gateways count together, and are replaced without a failed request', async () => {
  const port = await freePort()
  const env = { GATEWAY_PORT: String(port), BALANCING_NETWORK: `10.214.${randomInt(2, 120)}` }
  await withProject('with-haproxy.yml', env, async (project) => {
    await project.run('up', '--detach')
    await allHealthy(project, 3)
    await isServed(port)
    expect(await statuses(port, 'POST', '/forgot-password', 6)).toEqual([200, 200, 200, 200, 200, 429])

    const before = (await project.containers('sluice-gateway')).map(({ Id }) => Id)
    const load = startLoad(`http://127.0.0.1:${port}/`)
    const commands = commandsOf('docs/containers.md', 'old=$(docker compose ps -q gateway)')
    await project.shell(commands.replaceAll(/\bgateway\b/g, 'sluice-gateway'))
    await allHealthy(project, 3)
    expect(await load.end()).toEqual({ statuses: ['200'], isLong: true })
    const after = (await project.containers('sluice-gateway')).map(({ Id }) => Id)
    expect(after.filter((id) => before.includes(id))).toEqual([])
    expect((await send(port, 'POST', '/forgot-password')).status).toBe(429)
    const { output } = await theirRedis.exec(['redis-cli', 'info', 'keyspace'])
    expect(output.trim()).toBe('# Keyspace')
  })
}, 300_000)

test('with Caddy, clients come over HTTPS and are counted by their own address', async () => {
  const [httpPort, httpsPort] = [await freePort(), await freePort()]
  const edge = `10.214.${randomInt(120, 250)}`
  const env = {
    SITE: 'localhost',
    HTTP_PORT: String(httpPort),
    HTTPS_PORT: String(httpsPort),
    EDGE_NETWORK: edge,
  }
  await withProject('with-caddy.yml', env, async (project) => {
    await project.run('up', '--detach')
    await allHealthy(project, 1)
    const authority = await eventually(
      'Caddy has made its authority',
      () => project.run('exec', '-T', 'sluice-caddy', 'cat', '/data/caddy/pki/authorities/local/root.crt'),
      starting,
    )
    await eventually(
      'HTTPS answers',
      async () => expect(await statusOverTls(httpsPort, authority)).toBe(200),
      starting,
    )
    const redirect = await send(httpPort, 'GET', '/', { headers: { host: 'localhost' } })
    expect([redirect.status, redirect.headers.location]).toEqual([308, 'https://localhost/'])

    const client = await new GenericContainer(nodeImage)
      .withNetworkMode(`${project.name}_edge`)
      .withCommand(['sleep', '600'])
      .start()
    try {
      const own = client.getIpAddress(`${project.name}_edge`)
      const { output } = await client.exec(['node', '-e', forgingClient, '--', authority])
      expect(output.trim().split('\n')).toEqual([
        ...Array<string>(5).fill(`200 ${own}, ${edge}.2`),
        expect.stringMatching(/^429 /) as string,
      ])
    } finally {
      await client.stop()
    }
  })
}, 300_000)

/** Sends requests with a different address in each header, and prints the responses, one a line. */
const forgingClient = `(async () => {
  for (let i = 0; i < 6; i++) await new Promise((resolve) => {
    const headers = { host: 'localhost', 'x-forwarded-for': '203.0.113.' + i }
    const options = { host: 'sluice-caddy', servername: 'localhost', ca: process.argv[1], method: 'POST', headers }
    require('node:https').request({ ...options, path: '/forgot-password' }, async (response) => {
      console.log(response.statusCode, Buffer.concat(await response.toArray()).toString())
      resolve()
    }).end()
  })
})()`

function statusOverTls(port: number, ca: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, servername: 'localhost', ca, headers: { host: 'localhost' } }
    httpsRequest(options, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end()
  })
}
