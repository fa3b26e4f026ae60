import cluster from 'node:cluster'
import { EventEmitter } from 'node:events'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { WorkerProcesses } from '../../../proxy/app/workers/processes.ts'

const options = { settings: { shutdownDelayMs: 0, shutdownGraceMs: 0 } } as ConstructorParameters<
  typeof WorkerProcesses
>[0]

test('a stop does not wait for the exit of a worker that has exited, while Node still lists it for its channel', async () => {
  const { workers } = cluster
  onTestFinished(() => void Object.assign(cluster, { workers }))
  const exited = Object.assign(new EventEmitter(), { isDead: () => true, process: { kill: () => false } })
  Object.assign(cluster, { workers: { 1: exited } })
  const processes = new WorkerProcesses(options)
  expect(await Promise.race([processes.stop().then(() => 'stopped'), sleep(500, 'waiting')])).toBe('stopped')
})

test('a stop waits for the exit of a worker that a message can no longer be sent to', async () => {
  const { workers } = cluster
  onTestFinished(() => void Object.assign(cluster, { workers }))
  const leaving = Object.assign(new EventEmitter(), { isDead: () => false, process: { kill: () => true } })
  // As `fork` does for each worker.
  leaving.on('error', () => undefined)
  Object.assign(cluster, { workers: { 1: leaving } })
  const processes = new WorkerProcesses(options)
  const outcome = processes.stop().then(
    () => 'stopped',
    (error: unknown) => error,
  )
  leaving.emit('error', Object.assign(new Error('Channel closed'), { code: 'ERR_IPC_CHANNEL_CLOSED' }))
  expect(await Promise.race([outcome, setImmediate('waiting')])).toBe('waiting')
  leaving.emit('exit', 0, null)
  expect(await outcome).toBe('stopped')
})
