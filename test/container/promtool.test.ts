import { GenericContainer, type StartedTestContainer } from 'testcontainers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { dashboardQueries } from '../support/metrics/ops-queries.ts'

const prometheusImage = process.env['PROMETHEUS_IMAGE'] || 'prom/prometheus:latest'

const ops = new URL('../../ops/prometheus', import.meta.url).pathname
let container: StartedTestContainer

beforeAll(async () => {
  container = await new GenericContainer(prometheusImage)
    .withEntrypoint(['sleep'])
    .withCommand(['600'])
    .withCopyDirectoriesToContainer([{ source: ops, target: '/tmp/ops', mode: 0o755 }])
    .start()
})

afterAll(() => container.stop())

async function promtool(...words: readonly string[]): Promise<void> {
  const { output, exitCode } = await container.exec(['promtool', ...words])
  expect(exitCode, output).toBe(0)
}

test.each(['1', '2'])('promtool finds no mistake in a scrape of %s worker(s)', async (workers) => {
  const backend = await startBackend()
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, WORKERS: workers })
  expect((await gateway.send('POST', '/login')).status).toBe(200)
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  await container.copyContentToContainer([{ content: body, target: '/tmp/metrics', mode: 0o644 }])
  const { output, exitCode } = await container.exec(['sh', '-c', 'promtool check metrics < /tmp/metrics'])
  expect({ output, exitCode }).toEqual({ output: '', exitCode: 0 })
})

test('the alert rules are right, and each fires when it should', async () => {
  await promtool('check', 'rules', '/tmp/ops/alerts.yml')
  await promtool('test', 'rules', '/tmp/ops/alerts.test.yml')
})

test('the configuration of the compose file is right', () =>
  promtool('check', 'config', '--syntax-only', '/tmp/ops/prometheus.yml'))

test('promtool parses every query of the dashboard', async () => {
  const rules = dashboardQueries().map(({ query }, index) => ({
    record: `query:${index}`,
    // Replaces Grafana's own variables.
    expr: query.replaceAll('$__rate_interval', '5m').replaceAll(/\$\w+/g, '.+'),
  }))
  const content = JSON.stringify({ groups: [{ name: 'dashboard', rules }] })
  await container.copyContentToContainer([{ content, target: '/tmp/dashboard.yml', mode: 0o644 }])
  await promtool('check', 'rules', '/tmp/dashboard.yml')
})
