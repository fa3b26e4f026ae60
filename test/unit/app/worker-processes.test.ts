import cluster from 'node:cluster'
import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { WorkerProcesses } from '../../../proxy/app/workers/processes.ts'

test('a stop does not wait for the exit of a worker that has exited, while Node still lists it for its channel', async () => {
  const { workers } = cluster
  onTestFinished(() => void Object.assign(cluster, { workers }))
  const exited = Object.assign(new EventEmitter(), { isDead: () => true, process: { kill: () => false } })
  Object.assign(cluster, { workers: { 1: exited } })
  const processes = new WorkerProcesses({} as ConstructorParameters<typeof WorkerProcesses>[0])
  expect(await Promise.race([processes.stop().then(() => 'stopped'), sleep(500, 'waiting')])).toBe('stopped')
})
