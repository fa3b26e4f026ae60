import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { resolvingWith, startDnsServer } from '../support/network/dns-server.ts'
import { freePort } from '../support/network/ports.ts'
import { runNode, spawnNode } from '../support/gateway/process.ts'
import { freshRedis } from '../support/redis/redis.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

/** Starts a gateway. Resolves with its `listening` line, and with everything that it has written until then. */
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
    store: 'memory',
  })
})

test('the start line of a gateway with a file has its path, its rules, and Redis without the password', async () => {
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
    NAMESPACE: 'shop',
  })
  expect(line).toMatchObject({
    address: expect.stringMatching(/^http:\/\/\[::1\]:[1-9][0-9]*$/) as string,
    upstream: 'http://127.0.0.1:9/app',
    limits: join(cwd, 'sluice.yaml'),
    rules: 1,
    store: redisUrl,
    namespace: 'shop',
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
  expect(named.output).toMatch(/"level":"warn".*"sluice\.yml: has no limits, the built-in table/)
})

test.each([
  [
    'HOST',
    'x86_64-conda-linux-gnu',
    /^cannot listen: HOST is "x86_64-conda-linux-gnu", which cannot be resolved/,
  ],
  ['HOST', '192.0.2.1', /^cannot listen: HOST is "192\.0\.2\.1", which is not an address of this machine$/],
  ['ADMIN_HOST', 'none.invalid', /^cannot listen: ADMIN_HOST is "none\.invalid", which cannot be resolved/],
])('%s=%s, which cannot be listened on, is named', async (variable, host, message) => {
  const env = { PORT: '0', ADMIN_PORT: '0', ADMIN_TOKEN: '0123456789abcdef', [variable]: host }
  const { status, stderr } = await runNode('proxy/main.ts', env, [], { cwd: makeTemporaryDirectory() })
  expect({ status, stderr: stderr.trimEnd() }).toEqual({
    status: 1,
    stderr: expect.stringMatching(message) as string,
  })
})

test('an empty file, and a backend whose name does not resolve, are warned of, once for all workers', async () => {
  const cwd = makeTemporaryDirectory()
  writeFileSync(join(cwd, 'sluice.yaml'), '# nothing yet\n')
  const env = { PORT: '0', ADMIN_PORT: '0', WORKERS: '2', UPSTREAM_URL: 'http://backend.invalid:3000' }
  const gateway = spawnNode('proxy/main.ts', env, [], { cwd })
  const unresolved = /"level":"warn".*"hostname":"backend\.invalid".*UPSTREAM_URL does not resolve/
  await gateway.waitForLine(unresolved)
  await gateway.waitForLine(/"msg":"listening"/)
  expect(await gateway.stop()).toBe(0)
  const lines = gateway.output().split('\n')
  expect(lines.filter((line) => unresolved.test(line))).toHaveLength(1)
  const empty = /"level":"warn".*"sluice\.yaml: is empty, the built-in table/
  expect(lines.filter((line) => empty.test(line))).toHaveLength(1)
})

test('names of the backends of routes are looked up too, and upstream only where it is given', async () => {
  const cwd = makeTemporaryDirectory()
  const routes = `routes:
  - { name: a, upstream: ['http://a.invalid', 'http://127.0.0.1:1'] }
  - { name: b, upstream: 'http://b.invalid' }
`
  writeFileSync(join(cwd, 'sluice.yaml'), routes)
  const gateway = spawnNode('proxy/main.ts', { PORT: '0', ADMIN_PORT: '0', UPSTREAM_URL: '' }, [], { cwd })
  await gateway.waitForLine(/"level":"warn".*"hostname":"a\.invalid".*in route a does not resolve/)
  await gateway.waitForLine(/"level":"warn".*"hostname":"b\.invalid".*in route b does not resolve/)
  await gateway.stop()
  expect(gateway.output()).not.toContain('UPSTREAM_URL')
})

test('a lookup of its name that takes forever keeps no start waiting', async () => {
  const silent = await startDnsServer(undefined, 1)
  const { line } = await start(makeTemporaryDirectory(), {
    PORT: '0',
    UPSTREAM_URL: 'http://backend.invalid:3000',
    ...resolvingWith(silent),
  })
  expect(line).toMatchObject({ upstream: 'http://backend.invalid:3000' })
})
