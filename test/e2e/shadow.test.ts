import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

test('a limit in shadow refuses nothing, and the access log says what it would have refused', async () => {
  const backend = await startBackend()
  const file = join(makeTemporaryDirectory(), 'limits.yaml')
  const rule = 'match: GET /search, requests: 1, window: 1m'
  writeFileSync(
    file,
    `limits: [{ name: tried, ${rule}, mode: shadow }, { name: other, match: GET /, requests: 9, window: 1m }]`,
  )
  const gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: file,
    ACCESS_LOG: '1',
    LOG_ADDRESSES: '0',
  })
  for (let sent = 0; sent < 3; sent++)
    expect(
      (await gateway.send('GET', '/search?q=secret', { headers: { 'x-api-key': 'secret' } })).status,
    ).toBe(200)
  expect((await gateway.send('GET', '/')).status).toBe(200)
  await gateway.waitForLine(/"path":"\/","status"/)
  const lines = gateway
    .output()
    .split('\n')
    .filter((line) => line.includes('"msg":"request"'))
    .map((line) => JSON.parse(line) as { wouldBeRefusedBy?: string[] })
  expect(lines.map(({ wouldBeRefusedBy }) => wouldBeRefusedBy)).toEqual([
    undefined,
    ['tried'],
    ['tried'],
    undefined,
  ])
  expect(gateway.output()).not.toMatch(/secret|127\.0\.0\.1"/)
})
