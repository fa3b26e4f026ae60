import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send } from '../support/gateway/gateway.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { expectReturned } from '../support/leases/returned-units.ts'
import { watchForWaiting } from '../support/load/core-time.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

const QUOTA = 400

const config = `
limits:
  - { name: everybody, match: GET /api, key: global, requests: ${QUOTA}, window: 1h, lease: 20 }
`

test('two workers let exactly the quota pass by leases, and tell of it', async () => {
  const backend = await startBackend()
  const gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: writeConfigFile(config),
    REDIS_URL: await freshRedis(),
    WORKERS: '2',
  })
  const ask = async (): Promise<number> => (await gateway.send('GET', '/api')).status
  const statuses: number[] = []
  const passed = (): number => statuses.filter((status) => status === 200).length
  const isBusy = watchForWaiting()
  // While one worker holds the last units, the other refuses requests.
  await expectReturned('the quota is used up', isBusy, async () => {
    statuses.push(...(await Promise.all(Array.from({ length: 60 }, ask))))
    return [QUOTA - passed(), 0]
  })
  const before = passed()
  for (let more = 0; more < 5; more++) statuses.push(...(await Promise.all(Array.from({ length: 20 }, ask))))
  expect(passed()).toBeLessThanOrEqual(QUOTA)
  if (before === QUOTA) expect(passed()).toBe(QUOTA)
  expect(new Set(statuses)).toEqual(new Set([200, 429]))

  await eventually('the metrics have the leases', async () => {
    const { body } = await send(gateway.adminPort, 'GET', '/metrics')
    const units = (change: string): number =>
      parseExposition(body).value('sluice_leased_units_total', { policy: 'everybody', change })
    expect(units('used')).toBeGreaterThan(0)
    expect(units('taken')).toBe(units('used') + units('returned'))
  })
  expect((await askOperator(gateway, 'GET', '/api/limits')).body).toMatchObject({ limits: [{ lease: 20 }] })
  const question = { method: 'GET', target: '/api' }
  expect((await askOperator(gateway, 'POST', '/api/explain', question)).body).toMatchObject({
    rules: [{ name: 'everybody', lease: 20, states: [{ limit: QUOTA, remaining: 0 }] }],
  })
})
