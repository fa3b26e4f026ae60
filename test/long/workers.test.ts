import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { freePort } from '../support/network/ports.ts'
import { eventually } from '../support/wait/eventually.ts'
import { passes } from '../support/wait/passes.ts'

const rush = async (port: number, count: number): Promise<number[]> => {
  const replies = await Promise.all(Array.from({ length: count }, () => send(port, 'POST', '/share')))
  return replies.map(({ status }) => status)
}

test('workers without Redis enforce one table, and report as one', async () => {
  const backend = await startBackend()
  const gateway = await startGateway({
    UPSTREAM_URL: backend.url,
    WORKERS: '2',
    PORT: String(await freePort()),
  })
  const statuses = await rush(gateway.port, 300)
  expect(statuses.filter((status) => status === 200)).toHaveLength(100)
  expect(statuses.filter((status) => status === 429)).toHaveLength(200)
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  expect(body).toContain('sluice_decisions_total{policy="share",outcome="allowed"} 100')
  expect(body).toContain('sluice_decisions_total{policy="share",outcome="refused"} 200')
  expect(body).toContain('sluice_processes 3')
  expect((await send(gateway.adminPort, 'GET', '/readyz')).body).toContain('"store":"memory"')
  expect(await gateway.process.stop('SIGTERM')).toBe(0)
})

// A flood, a cold start or a CPU quota keep the primary process from its core for longer than Redis may take to answer.
test('workers enforce one table while their primary process does not run for a while', async () => {
  const backend = await startBackend()
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, WORKERS: '2', STORE_TIMEOUT: '100ms' })
  expect(new Set(await rush(gateway.port, 100))).toEqual(new Set([200]))
  gateway.process.child.kill('SIGSTOP')
  const during = rush(gateway.port, 40)
  await passes(500)
  gateway.process.child.kill('SIGCONT')
  expect(new Set(await during)).toEqual(new Set([429]))
  const { body } = await send(gateway.adminPort, 'GET', '/metrics')
  expect(body).toContain('sluice_decisions_total{policy="share",outcome="local"} 0')
  expect(body).toContain('sluice_store_errors_total 0')
})

test('a worker that dies is replaced, and counters keep their values', async () => {
  const backend = await startBackend()
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, WORKERS: '2' })
  await rush(gateway.port, 100)
  const status = await send(gateway.adminPort, 'GET', '/api/status')
  expect(status.body).toContain('"workers":2')
  const workerPids = gateway.process
    .output()
    .split('\n')
    .filter((line) => line.includes('"msg":"worker listening"'))
    .map((line) => (JSON.parse(line) as { pid: number }).pid)
  expect(workerPids).toHaveLength(2)
  process.kill(workerPids[0] ?? 0, 'SIGKILL')
  await gateway.process.waitForLine(/worker exited; restarting/)
  await eventually(
    'three workers listen',
    () => (gateway.process.output().match(/"msg":"worker listening"/g) ?? []).length >= 3,
  )
  expect(new Set(await rush(gateway.port, 20))).toEqual(new Set([429]))
})

// The machine may lack a process, a file or memory for a worker. Here it lacks a file.
test('a worker that cannot be started is retried', async () => {
  const backend = await startBackend()
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, WORKERS: '2' })
  const pids = (): number[] =>
    gateway.process
      .output()
      .split('\n')
      .filter((line) => line.includes('"msg":"worker listening"'))
      .map((line) => (JSON.parse(line) as { pid: number }).pid)
  // Each worker logs its own line, perhaps after the gateway's line.
  await eventually('the worker is gone', () => pids().length === 2)
  const primary = Number(readFileSync(`/proc/${pids()[0] ?? 0}/stat`, 'utf8').split(' ')[3])
  const limit = (files: string): void => {
    execFileSync('prlimit', ['--pid', String(primary), `--nofile=${files}:`])
  }
  limit('4')
  process.kill(pids()[0] ?? 0, 'SIGKILL')
  await gateway.process.waitForLine(/cannot start a worker/)
  limit('1024')
  await eventually('another worker has taken its place', () => pids().length >= 3)
  expect(new Set(await rush(gateway.port, 20))).toEqual(new Set([200]))
  expect(gateway.process.output()).not.toContain('uncaught')
  expect(await gateway.process.stop('SIGTERM')).toBe(0)
})
