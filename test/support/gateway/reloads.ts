import { writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { WebSocketServer } from 'ws'
import { startBackend } from '../http/backend.ts'
import { tlsSettings } from '../network/certificates.ts'
import { startGateway } from './gateway.ts'
import { askOperator } from './operator.ts'
import { startLoad } from '../load/reload-load.ts'
import { writeConfigFile } from '../run/temporary-directory.ts'
import { eventually } from '../wait/eventually.ts'

/** The tables that take turns: each counts `load` and `sockets` with different quotas, among rules that come and go. */
const tables = [0, 1, 2].map(
  (turn) => `limits:
  - { name: other-${turn}, match: GET /other, requests: 1, window: 1m }
  - { name: load, match: GET /load, requests: ${1_000_000 + turn}, window: 1h }
  - { name: sliding, match: GET /load, requests: ${90_000 + turn}, window: 1h, algorithm: sliding }
  - { name: sockets, match: GET /socket, concurrency: ${10 + turn} }
`,
)
const wrong = ['limits: [{ name: load }]\n', 'limits: {\n', 'unknown: 1\n']

/**
 * Reloads valid and invalid settings in turn under load. No request fails, no connection is dropped, no count is lost, and invalid settings
 * are refused with their mistakes.
 */
export async function reloadUnderLoad(env: Record<string, string>, reloads: number): Promise<void> {
  const backend = await startBackend()
  new WebSocketServer({ server: backend.server }).on('connection', (socket) =>
    socket.on('message', (data) => socket.send(data)),
  )
  const file = writeConfigFile(tables[0] ?? '')
  const gateway = await startGateway({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: file,
    ...tlsSettings(),
    ...env,
  })
  const end = await startLoad(gateway.port)
  for (let turn = 1; turn <= reloads; turn++) {
    const isWrong = turn % 2 === 0
    // Between reloads, the gateway also checks the file by itself at any time.
    writeFileSync(file, (isWrong ? wrong[(turn / 2) % 3] : tables[((turn - 1) / 2) % 3]) ?? '')
    const { status, body } = await askOperator(gateway, 'POST', '/api/reload', {})
    expect(status).toBe(isWrong ? 422 : 200)
    if (isWrong) expect((body as { mistakes: string[] }).mistakes[0]).toMatch(/^\S+sluice\.yaml:\d+: /)
    await sleep(10)
  }
  const { body: inFlight } = await askOperator(gateway, 'POST', '/api/clients/inspect', {
    client: { ip: '127.0.0.1' },
    policy: 'sockets',
  })
  expect(inFlight).toMatchObject({ states: [{ used: 2 }] })
  const { failures, requests, echoes } = await end()
  expect(failures).toEqual([])
  expect(requests).toBeGreaterThan(reloads)
  expect(echoes).toBeGreaterThan(reloads)
  const usedOf = async (policy: string): Promise<unknown> =>
    (
      (await askOperator(gateway, 'POST', '/api/clients/inspect', { client: { ip: '127.0.0.1' }, policy }))
        .body as {
        states: { used: number }[]
      }
    ).states[0]?.used
  expect(await usedOf('load')).toBe(requests)
  expect(await usedOf('sliding')).toBe(requests)
  await eventually('no tunnel is counted any more', async () => expect(await usedOf('sockets')).toBe(0))
  expect(gateway.process.output()).not.toMatch(/"level":"error"(?!.*reload refused)/)
}
