import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { CLOSED_PORT } from '../support/network/ports.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

const limits = `
limits:
  - { name: local, match: '* /*', requests: 2, window: 1m }
  - { name: open, match: GET /open, requests: 1, window: 1m, onStoreError: open }
  - { name: closed, match: GET /closed, requests: 1, window: 1m, onStoreError: closed }
`

test('decisions without Redis have outcomes of their own in the metrics', async () => {
  const backend = await startBackend()
  const file = join(makeTemporaryDirectory(), 'limits.yaml')
  writeFileSync(file, limits)
  const gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: file,
    REDIS_URL: `redis://127.0.0.1:${CLOSED_PORT}`,
  })
  const statuses: number[] = []
  for (const path of ['/open', '/closed', '/', '/']) statuses.push((await gateway.send('GET', path)).status)
  expect(statuses).toEqual([200, 503, 200, 429])
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  const told = body.match(/^sluice_decisions_total\{.* [1-9].*$/gm)
  expect(told?.sort()).toEqual([
    'sluice_decisions_total{policy="closed",outcome="unavailable"} 1',
    'sluice_decisions_total{policy="local",outcome="local"} 2',
    'sluice_decisions_total{policy="local",outcome="refused"} 1',
    'sluice_decisions_total{policy="local",outcome="unavailable"} 1',
    'sluice_decisions_total{policy="open",outcome="open"} 1',
  ])
})
