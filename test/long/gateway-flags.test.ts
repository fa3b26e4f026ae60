import { join } from 'node:path'
import { expect, test } from 'vitest'
import { spawnCommand } from '../support/gateway/process.ts'
import { eventually } from '../support/wait/eventually.ts'

/** Loaded into all processes of the gateway, including workers. */
const garbage = join(import.meta.dirname, '../support/gateway/buffer-garbage.ts')

const env = { PORT: '0', ADMIN_PORT: '0', UPSTREAM_URL: 'http://127.0.0.1:9' }
const source = join(import.meta.dirname, '../..')

// With V8's default limit for buffers, 1.3 GB of buffers cause twenty full collections in every process.
test.each([
  ['node proxy/main.ts', ['proxy/main.ts'], '1'],
  ['npm run gateway', ['scripts/run.js', 'proxy/main.ts'], '1'],
  ['sluice run', ['proxy/cli/main.ts', 'run'], '1'],
  ['workers', ['scripts/run.js', 'proxy/main.ts'], '2'],
])('%s: large bodies do not collect all garbage again and again', async (_, command, workers) => {
  const args = ['--import', garbage, ...command]
  const gateway = spawnCommand(process.execPath, { ...env, WORKERS: workers }, args, { cwd: source })
  await gateway.waitForLine(/"msg":"listening"/)
  const processes = workers === '1' ? 1 : 3
  const counts = await eventually('the collections of every process', () => {
    const told = [...gateway.output().matchAll(/(\d+) full collections/g)]
    return told.length === processes && told.map(([, count]) => Number(count))
  })
  expect(Math.max(...counts)).toBeLessThanOrEqual(8)
  expect(await gateway.stop()).toBe(0)
})
