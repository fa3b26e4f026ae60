import { describe, expect, test } from 'vitest'
import { send } from '../support/gateway/gateway.ts'
import { spawnCommand } from '../support/gateway/process.ts'
import { startBackend } from '../support/http/backend.ts'
import { freePort } from '../support/network/ports.ts'
import { eventually } from '../support/wait/eventually.ts'

describe('a gateway whose log is on a full disk', () => {
  test.each(['1', '2'])(
    'a gateway with WORKERS=%s and a full log disk limits, forwards and stops as usual',
    async (workers) => {
      const backend = await startBackend()
      const [port, adminPort] = [await freePort(), await freePort()]
      // Each write to this device fails with ENOSPC.
      const gateway = spawnCommand(
        'bash',
        {
          PORT: String(port),
          ADMIN_PORT: String(adminPort),
          WORKERS: workers,
          UPSTREAM_URL: backend.url,
          ACCESS_LOG: '1',
        },
        ['-c', `exec '${process.execPath}' proxy/main.ts >/dev/full 2>&1`],
      )
      await eventually('it is ready', async () =>
        expect((await send(adminPort, 'GET', '/readyz')).status).toBe(200),
      )
      const statuses = []
      for (let i = 0; i < 32; i++) statuses.push((await send(port, 'POST', '/login')).status)
      expect(statuses).toEqual([...Array<number>(30).fill(200), 429, 429])
      gateway.child.kill('SIGTERM')
      expect(await gateway.exit).toBe(0)
    },
  )
})
