import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freePort } from '../support/ports.ts'
import { spawnNode } from '../support/process.ts'
import { freshRedis } from '../support/redis.ts'
import { makeTemporaryDirectory } from '../support/temporary-directory.ts'

/** What the gateway says when it listens, and everything that it has written until then. */
async function start(cwd: string, env: Record<string, string>): Promise<{ line: unknown; output: string }> {
  const gateway = spawnNode('proxy/main.ts', { ADMIN_PORT: '0', ...env }, [], { cwd })
  const [line] = await gateway.waitForLine(/^.*"msg":"listening".*$/)
  await gateway.stop()
  return { line: JSON.parse(line), output: gateway.output() }
}

test('without a file: the built-in table, counted in the process, on all interfaces', async () => {
  const port = await freePort()
  const { line } = await start(makeTemporaryDirectory(), { PORT: String(port), WORKERS: '2' })
  expect(line).toMatchObject({
    address: `http://*:${port}`,
    port,
    adminPort: expect.any(Number) as number,
    upstream: 'http://127.0.0.1:3000',
    limits: 'built-in table',
    rules: 6,
    store: 'embedded',
  })
})

test('with a file: its path, its rules, and Redis without the password', async () => {
  const cwd = makeTemporaryDirectory()
  writeFileSync(
    join(cwd, 'sluice.yaml'),
    'upstream: http://127.0.0.1:9/app/\nlimits: [{ name: a, match: GET /, requests: 1, window: 1m }]\n',
  )
  const redisUrl = await freshRedis()
  const { line, output } = await start(cwd, {
    HOST: '::1',
    PORT: '0',
    REDIS_URL: redisUrl.replace('redis://', 'redis://:a-password@'),
  })
  expect(line).toMatchObject({
    address: expect.stringMatching(/^http:\/\/\[::1\]:[1-9][0-9]*$/) as string,
    upstream: 'http://127.0.0.1:9/app',
    limits: join(cwd, 'sluice.yaml'),
    rules: 1,
    store: redisUrl,
  })
  expect(output).not.toContain('a-password')
})

test('a file without limits, limits switched off, and a file of another name', async () => {
  const cwd = makeTemporaryDirectory()
  writeFileSync(join(cwd, 'sluice.yml'), 'logLevel: info\n')
  const passedOver = await start(cwd, { PORT: '0', RATE_LIMITING_DISABLED: '1' })
  expect(passedOver.line).toMatchObject({ limits: 'switched off', rules: 0 })
  expect(passedOver.output).toMatch(/"level":"warn".*"sluice\.yml: ignored/)

  const named = await start(cwd, { PORT: '0', CONFIG_FILE: 'sluice.yml' })
  expect(named.line).toMatchObject({
    limits: `built-in table, because ${join(cwd, 'sluice.yml')} has no limits`,
  })
  expect(named.output).not.toContain('ignored')
})
