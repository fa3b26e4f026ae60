import { randomBytes, randomInt } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createComposeProject } from '../support/containers/compose.ts'
import { testImages } from '../support/containers/images.ts'
import { alerts } from '../support/metrics/ops-queries.ts'
import { freePort } from '../support/network/ports.ts'
import { eventually } from '../support/wait/eventually.ts'

// The profile `observe` of the compose file without Grafana, whose dashboard test/e2e/ops-series.test.ts checks.

const port = await freePort()
const project = await createComposeProject({
  GATEWAY_PORT: String(await freePort()),
  PROMETHEUS_PORT: String(port),
  BALANCING_NETWORK: `10.213.${randomInt(100, 250)}`,
  SLUICE_GATEWAY_IMAGE: testImages.gateway,
  SLUICE_ORIGIN_IMAGE: testImages.origin,
  ADMIN_HOST: '0.0.0.0',
  ADMIN_TOKEN: randomBytes(16).toString('hex'),
})

async function prometheus(path: string): Promise<unknown> {
  const reply = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)
  const { data } = (await reply.json()) as { data: unknown }
  return data
}

beforeAll(async () => {
  await project.run('build')
  await project.run('--profile', 'observe', 'up', '--detach', '--scale', 'gateway=2', 'gateway', 'prometheus')
})

afterAll(() => project.remove())

test('Prometheus finds all gateways and may read their metrics', async () => {
  type Targets = { activeTargets: { health: string; lastError: string; labels: Record<string, string> }[] }
  await eventually(
    'Prometheus reads both gateways',
    async () => {
      const { activeTargets } = (await prometheus('targets')) as Targets
      expect(activeTargets).toMatchObject([
        { health: 'up', lastError: '', labels: { job: 'sluice' } },
        { health: 'up', lastError: '', labels: { job: 'sluice' } },
      ])
    },
    { endMs: 90_000 },
  )
})

test('Prometheus has the alert rules and the series that they select', async () => {
  type Rules = { groups: { rules: { name: string; health: string }[] }[] }
  await eventually(
    'Prometheus evaluates all alerts',
    async () => {
      const { groups } = (await prometheus('rules')) as Rules
      const rules = groups.flatMap((group) => group.rules)
      expect(rules.map(({ name }) => name)).toEqual(alerts.map(({ alert }) => alert))
      expect(new Set(rules.map(({ health }) => health))).toEqual(new Set(['ok']))
      const query = encodeURIComponent('sum(sluice_limits_enabled)')
      expect(await prometheus(`query?query=${query}`)).toMatchObject({
        result: [{ value: [expect.anything(), '2'] }],
      })
    },
    { endMs: 90_000 },
  )
})
