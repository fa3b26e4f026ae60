import { afterAll, beforeAll, expect, test } from 'vitest'
import { createComposeProject, freePortRange } from '../support/compose.ts'
import { requireEngine, userIdsOf, type ContainerDetails } from '../support/engine.ts'
import { testImages } from '../support/images.ts'

const services = ['redis', 'origin', 'gateway'] as const
const up = ['up', '--detach', '--scale', 'gateway=3'] as const

const [firstPort, lastPort] = await freePortRange(10)
const engine = await requireEngine()
const project = await createComposeProject({
  GATEWAY_PORTS: `${firstPort}-${lastPort}`,
  SLUICE_GATEWAY_IMAGE: testImages.gateway,
  SLUICE_ORIGIN_IMAGE: testImages.origin,
})
let apiKey: string

beforeAll(async () => {
  await project.run('build')
  await project.run(...up)
  await allHealthy()
})

afterAll(() => project.remove())

async function allContainers(): Promise<ContainerDetails[]> {
  return (await Promise.all(services.map((service) => project.containers(service)))).flat()
}

/** Resolves when every container is healthy; rejects when one of them cannot become so any more. */
async function allHealthy(): Promise<void> {
  for (;;) {
    const states = (await allContainers()).map(({ Name, State }) => ({
      Name,
      Status: State.Health?.Status,
      State,
    }))
    const broken = states.find(({ Status, State }) => Status === 'unhealthy' || !State.Running)
    if (broken) throw new Error(`${broken.Name} is broken:\n${await project.run('logs', '--tail', '50')}`)
    if (states.every(({ Status }) => Status === 'healthy')) return
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}

/** Where the replicas are reached from this machine. */
async function gateways(): Promise<string[]> {
  const containers = await project.containers('gateway')
  return containers.map(({ NetworkSettings }) => {
    // An engine may have given the IPv6 side of a container another port of the range.
    const published = NetworkSettings.Ports['8080/tcp']?.find(({ HostIp }) => HostIp === '0.0.0.0')
    if (!published) throw new Error('a gateway has no port on this machine')
    return `http://127.0.0.1:${published.HostPort}`
  })
}

async function me(gateway: string, key?: string): Promise<number> {
  const response = await fetch(
    `${gateway}/api/v1/me`,
    key === undefined ? {} : { headers: { 'x-api-key': key } },
  )
  await response.arrayBuffer()
  return response.status
}

test('one origin, one Redis and three gateways become healthy', async () => {
  const counts = await Promise.all(
    services.map(async (service) => (await project.containers(service)).length),
  )
  expect(counts).toEqual([1, 1, 3])
})

test('no container runs a process as root or can become root', async () => {
  for (const { Id, Name, HostConfig } of await allContainers()) {
    expect(await userIdsOf(engine, Id), Name).not.toContain('0')
    expect(HostConfig, Name).toMatchObject({ ReadonlyRootfs: true, CapDrop: ['ALL'], Privileged: false })
    expect(HostConfig.SecurityOpt).toContain('no-new-privileges:true')
  }
})

test('a key made in the origin’s container is good at every gateway, and no key is not', async () => {
  const created = await project.run(
    ...['exec', '-T', 'origin', 'node', 'origin/keys.ts', 'create', '--project', 'compose', '--json'],
  )
  apiKey = (JSON.parse(created) as { key: string }).key
  for (const gateway of await gateways()) {
    expect([await me(gateway, apiKey), await me(gateway), await me(gateway, 'unknown')]).toEqual([
      200, 401, 401,
    ])
  }
})

test('three replicas together let 30 POST /login through', async () => {
  const replicas = await gateways()
  const requests = Array.from({ length: 90 }, (_, index) =>
    fetch(`${replicas[index % replicas.length] ?? ''}/login`, { method: 'POST' }),
  )
  const answers = await Promise.all(requests)
  const refused = answers.filter(({ status }) => status === 429)
  expect(answers.length - refused.length).toBe(30)
  for (const answer of refused) {
    expect(await answer.text()).toBe('{"code":429,"error":"Too many requests, Please try after a while!"}')
  }
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

test('stopping ends gateways and origin by themselves, with status 0', async () => {
  await project.run('stop')
  for (const service of ['gateway', 'origin']) {
    for (const { Name, State } of await project.containers(service)) {
      expect({ Name, status: State.ExitCode, killed: State.OOMKilled }).toEqual({
        Name,
        status: 0,
        killed: false,
      })
    }
  }
})

test('keys outlive the containers', async () => {
  await project.run('down')
  expect(await allContainers()).toEqual([])
  await project.run(...up)
  await allHealthy()
  for (const gateway of await gateways()) expect(await me(gateway, apiKey)).toBe(200)
})
