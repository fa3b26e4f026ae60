import { EventEmitter } from 'node:events'
import { expect, test } from 'vitest'
import { receiveWorkerEvents } from '../../../proxy/app/observe/webhooks.ts'
import type { WebhookEvent } from '../../../proxy/telemetry/webhooks/webhook-event.ts'

class FakeWorker extends EventEmitter {
  readonly id: number
  constructor(id: number) {
    super()
    this.id = id
  }
}

function start() {
  const told: WebhookEvent[] = []
  let isStopping = false
  const hear = receiveWorkerEvents(
    (event) => told.push(event),
    () => isStopping,
  )
  const workers = [new FakeWorker(1), new FakeWorker(2)] as const
  for (const worker of workers) hear(worker)
  const breaker = (at: 0 | 1, state: 'open' | 'closed', node?: string): void =>
    void workers[at].emit('message', { webhook: { type: 'breaker', state, ...(node && { node }) } })
  const states = (): string[] => told.map((event) => ('state' in event ? event.state : event.type))
  const stop = (): void => void (isStopping = true)
  return { told, workers, breaker, states, stop }
}

test('the first open breaker of the workers is reported, and the last that closes', () => {
  const { breaker, states } = start()
  breaker(0, 'open')
  breaker(1, 'open')
  breaker(0, 'closed')
  expect(states()).toEqual(['open'])
  breaker(1, 'closed')
  expect(states()).toEqual(['open', 'closed'])
  breaker(1, 'open')
  expect(states()).toEqual(['open', 'closed', 'open'])
})

test('in a cluster, the first breaker that opens in a worker is reported for each node, and the last that closes', () => {
  const { told, workers, breaker } = start()
  breaker(0, 'open', 'a:1')
  breaker(1, 'open', 'b:1')
  breaker(1, 'open', 'a:1')
  breaker(0, 'closed', 'a:1')
  workers[1].emit('exit')
  const events = told.map((event) => (event.type === 'breaker' ? `${event.node} ${event.state}` : ''))
  expect(events.slice(0, 2)).toEqual(['a:1 open', 'b:1 open'])
  expect(events.slice(2).toSorted()).toEqual(['a:1 closed', 'b:1 closed'])
})

test('a worker that exits has no open breaker any more', () => {
  const { workers, breaker, states } = start()
  breaker(0, 'open')
  breaker(1, 'open')
  workers[0].emit('exit')
  expect(states()).toEqual(['open'])
  workers[1].emit('exit')
  expect(states()).toEqual(['open', 'closed'])
})

test('workers that exit because the gateway stops do not report Redis as available', () => {
  const { workers, breaker, states, stop } = start()
  breaker(0, 'open')
  breaker(1, 'open')
  stop()
  workers[0].emit('exit')
  expect(states()).toEqual(['open'])
  workers[1].emit('exit')
  expect(states()).toEqual(['open'])
})

test('a breaker that closes while the gateway stops is reported, although other workers have exited with theirs open', () => {
  const { workers, breaker, states, stop } = start()
  breaker(0, 'open')
  breaker(1, 'open')
  stop()
  workers[0].emit('exit')
  breaker(1, 'closed')
  expect(states()).toEqual(['open', 'closed'])
})

test('other events of workers are passed on unchanged, and other messages are ignored', () => {
  const { told, workers } = start()
  const ban: WebhookEvent = { type: 'ban', by: 'rule', policy: 'login', forSeconds: 60 }
  workers[1].emit('message', { webhook: ban })
  for (const other of [undefined, null, 'webhook', { clients: 'hello' }]) workers[1].emit('message', other)
  expect(told).toEqual([ban])
})
