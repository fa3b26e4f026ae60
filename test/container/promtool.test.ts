import { GenericContainer } from 'testcontainers'
import { expect, test } from 'vitest'
import { startBackend } from '../support/backend.ts'
import { send, startGateway } from '../support/gateway.ts'

const prometheusImage = process.env['PROMETHEUS_IMAGE'] || 'prom/prometheus:latest'

test.each(['1', '2'])('promtool finds nothing in a scrape of %s worker(s)', async (workers) => {
  const backend = await startBackend()
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, WORKERS: workers })
  expect((await gateway.send('POST', '/login')).status).toBe(200)
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  const container = await new GenericContainer(prometheusImage)
    .withEntrypoint(['sleep'])
    .withCommand(['600'])
    .withCopyContentToContainer([{ content: body, target: '/tmp/metrics', mode: 0o644 }])
    .start()
  try {
    const { output, exitCode } = await container.exec(['sh', '-c', 'promtool check metrics < /tmp/metrics'])
    expect({ output, exitCode }).toEqual({ output: '', exitCode: 0 })
  } finally {
    await container.stop()
  }
})
