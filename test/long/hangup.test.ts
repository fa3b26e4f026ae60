import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { startOrigin } from '../support/gateway/origin.ts'
import { freePort } from '../support/network/ports.ts'
import { spawnCommand, spawnNode } from '../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

// SIGHUP ends a process that does not handle it. The gateway reloads its settings (reload.test.ts) and, with HTTPS, its certificate
// (tls.test.ts).

const read = /"level":"info".*"trigger":"signal".*"msg":"limits unchanged"/
const ignored =
  /"level":"warn".*"msg":"SIGHUP ignored: the settings are read at startup only; restart to change them"/

test('SIGHUP to the whole group ends no worker, and is one reload', async () => {
  const backend = await startBackend()
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, WORKERS: '2' })
  process.kill(-(gateway.process.child.pid ?? 0), 'SIGHUP')
  await gateway.process.waitForLine(read)
  expect((await gateway.send('GET', '/')).status).toBe(200)
  expect(await gateway.process.stop()).toBe(0)
  expect(gateway.process.output().match(/"msg":"worker listening"/g)).toHaveLength(2)
  expect(gateway.process.output().match(/"trigger":"signal"/g)).toHaveLength(1)
})

test('SIGHUP while the settings are read does not end the gateway', async () => {
  // A pipe, because the gateway waits for whoever writes into it.
  const pipe = join(makeTemporaryDirectory(), 'sluice.yaml')
  execFileSync('mkfifo', [pipe])
  const started = spawnNode('proxy/main.ts', { PORT: '0', ADMIN_PORT: '0', CONFIG_FILE: pipe })
  const file = await open(pipe, 'w')
  started.child.kill('SIGHUP')
  await file.write('limits: []\n')
  await file.close()
  await started.waitForLine(/"msg":"listening"/)
  expect(await started.stop()).toBe(0)
})

test('the origin ignores SIGHUP too', async () => {
  const origin = await startOrigin()
  origin.process.child.kill('SIGHUP')
  await origin.process.waitForLine(ignored)
  expect((await send(origin.port, 'GET', '/health')).status).toBe(200)
  expect(await origin.process.stop()).toBe(0)
})

test('npm start passes it on to the gateway', async () => {
  const cwd = makeTemporaryDirectory()
  const port = await freePort()
  const env = {
    PORT: String(port),
    ADMIN_PORT: String(await freePort()),
    ORIGIN_PORT: String(await freePort()),
    ORIGIN_DB: join(cwd, 'origin.db'),
  }
  const started = spawnNode('scripts/start.ts', env, [], { cwd })
  // The gateway starts once the origin listens.
  await started.waitForLine(/"name":"gateway".*"msg":"listening"/)
  started.child.kill('SIGHUP')
  await started.waitForLine(new RegExp(`"name":"gateway".*${read.source.replace('"level":"info".*', '')}`))
  expect((await send(port, 'GET', '/health')).status).toBe(200)
  expect(await started.stop()).toBe(0)
  expect(started.output()).not.toMatch(/"name":"origin".*SIGHUP/)
})

// Otherwise the gateway would keep running and hold its port, with nobody to stop it.
test.runIf(process.platform === 'linux')('a gateway whose terminal is closed stops in order', async () => {
  const log = join(makeTemporaryDirectory(), 'log')
  const env = { PORT: '0', ADMIN_PORT: '0', CONFIG_FILE: 'test/support/gateway/defaults.yaml' }
  const command = `exec '${process.execPath}' proxy/main.ts > '${log}'`
  const terminal = spawnCommand('script', env, ['--quiet', '--command', command, '/dev/null'])
  const lineOf = async (msg: string): Promise<{ pid: number; signal?: string }> => {
    const line = await eventually(`it logs ${msg}`, () => {
      const lines = readLines(log)
      const found = lines.find((text) => text.includes(`"msg":"${msg}"`))
      expect(found, lines.join('\n')).toBeDefined()
      return found ?? false
    })
    return JSON.parse(line) as { pid: number; signal?: string }
  }
  const { pid } = await lineOf('listening')
  try {
    process.kill(pid, 'SIGHUP')
    await lineOf('limits unchanged')
    terminal.child.kill('SIGKILL')
    expect((await lineOf('stopping')).signal).toBe('SIGTERM')
    await lineOf('stopped')
  } catch (error) {
    process.kill(pid, 'SIGKILL')
    throw error
  }
})

function readLines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(0, -1)
  } catch {
    return []
  }
}
