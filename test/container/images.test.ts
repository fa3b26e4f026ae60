import {
  Network,
  Wait,
  type GenericContainer,
  type StartedNetwork,
  type StartedTestContainer,
} from 'testcontainers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { logOf, requireEngine, userIdsOf, type Engine } from '../support/containers/engine.ts'
import { buildImage } from '../support/containers/images.ts'

const limits = `
limits:
  - name: custom
    match: GET /api/v1/me
    requests: 2
    window: 1m
`

const stops: (() => Promise<unknown>)[] = []
let engine: Engine
let network: StartedNetwork
let origin: StartedTestContainer
let gateway: StartedTestContainer

beforeAll(async () => {
  engine = await requireEngine()
  network = await new Network().start()
  stops.push(() => network.stop())
  const images = { origin: await buildImage('origin'), gateway: await buildImage('gateway') }
  // A container counts as started when the image's own HEALTHCHECK reports healthy.
  const started = async (image: GenericContainer): Promise<StartedTestContainer> => {
    const container = await image.withNetwork(network).withWaitStrategy(Wait.forHealthCheck()).start()
    stops.push(() => container.stop())
    return container
  }
  origin = await started(images.origin.withNetworkAliases('backend').withExposedPorts(3000))
  gateway = await started(
    images.gateway
      .withEnvironment({ UPSTREAM_URL: 'http://backend:3000' })
      .withCopyContentToContainer([{ content: limits, target: '/etc/sluice/sluice.yaml' }])
      .withExposedPorts(8080),
  )
})

afterAll(async () => {
  // The network goes last, because it must be empty.
  for (const stop of stops.reverse()) await stop()
})

/** @param port the port within the container */
function addressOf(container: StartedTestContainer, port: number): string {
  return `http://${container.getHost()}:${container.getMappedPort(port)}`
}

describe.each([
  {
    name: 'gateway',
    container: () => gateway,
    parts: ['dist', 'presets'],
    healthcheck: 'dist/proxy/healthcheck.js',
    maxKilobytes: 90_000,
  },
  {
    name: 'origin',
    container: () => origin,
    parts: ['compiled', 'origin', 'shared'],
    healthcheck: 'origin/healthcheck.ts',
    maxKilobytes: 100_000,
  },
])('the $name image', ({ container, parts, healthcheck, maxKilobytes }) => {
  const output = async (...command: string[]): Promise<string> => {
    const { exitCode, output: said } = await container().exec(command)
    expect({ exitCode, said }).toMatchObject({ exitCode: 0 })
    return said.trim()
  }

  test('the image runs as an ordinary user', async () => {
    expect(await output('id', '-un')).toBe('node')
    expect(await userIdsOf(engine, container().getId())).not.toContain('0')
  })

  test('the image runs without the compiler that strips types', async () => {
    // The compiler would add about 25 MB.
    const [, kilobytes] = /VmRSS:\s+(\d+) kB/.exec(await output('cat', '/proc/1/status')) ?? []
    expect(Number(kilobytes)).toBeLessThan(maxKilobytes)
  })

  test('holds the code it needs and production dependencies, nothing else', async () => {
    const files = (await output('ls', '/app')).split('\n')
    expect(files.sort()).toEqual(['LICENSE', 'node_modules', 'package.json', ...parts].sort())
    const packages = (await output('ls', '/app/node_modules')).split('\n')
    expect(packages).toContain('pino')
    for (const development of ['typescript', 'vitest', 'oxlint', 'testcontainers', 'node']) {
      expect(packages).not.toContain(development)
    }
  })

  test('the image starts without a warning', async () => {
    expect(await logOf(engine, container().getId())).not.toMatch(/warning/i)
  })

  test('the container is unhealthy if nothing answers the health check', async () => {
    const port = { ADMIN_PORT: '1', ORIGIN_PORT: '1' }
    const { exitCode, output: said } = await container().exec(['node', healthcheck], { env: port })
    expect(exitCode).toBe(1)
    expect(said).toContain('ECONNREFUSED')
  })
})

test('the gateway stands before the origin with the table in /etc/sluice', async () => {
  const created = await origin.exec(['node', 'origin/keys.ts', 'create', '--project', 'images', '--json'])
  expect(created.exitCode).toBe(0)
  const { key } = JSON.parse(created.stdout) as { key: string }
  const me = `${addressOf(gateway, 8080)}/api/v1/me`

  const answers = []
  for (let request = 0; request < 3; request++)
    answers.push(await fetch(me, { headers: { 'x-api-key': key } }))
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
  expect(await answers[0]?.json()).toMatchObject({ project: { name: 'images' } })
  expect(await answers[2]?.json()).toEqual({
    code: 429,
    error: 'Too many requests, Please try after a while!',
  })
})

test('the command line is in the image of the gateway', async () => {
  const { output, exitCode } = await gateway.exec(['sluice', 'status', '--json'])
  expect({ exitCode, ...(JSON.parse(output) as object) }).toMatchObject({
    exitCode: 0,
    status: 'ready',
    rules: 1,
  })
})

test('the operator’s listener cannot be reached from outside the container', async () => {
  const probe = `fetch('http://${gateway.getIpAddress(network.getName())}:9090/livez').then(() => process.exit(3))`
  const { exitCode, output } = await origin.exec(['node', '-e', probe])
  expect(exitCode).toBe(1)
  expect(output).toContain('ECONNREFUSED')
})

test('both images end on SIGTERM by themselves, with status 0', async () => {
  for (const container of [gateway, origin]) {
    const inEngine = engine.container.getById(container.getId())
    const ended = inEngine.wait()
    await inEngine.kill({ signal: 'SIGTERM' })
    expect(await ended).toMatchObject({ StatusCode: 0 })
    expect(await logOf(engine, container.getId())).toContain('stopped')
  }
})
