import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterEach, expect, test, vi } from 'vitest'
import { LiveEvents } from '../../../proxy/admin/page/live-events.ts'
import { createLog } from '../../../shared/log.ts'

afterEach(() => {
  vi.useRealTimers()
})

test('a listener gets the history first, however long it takes to read', async () => {
  vi.useFakeTimers()
  let giveHistory: (history: object) => void = () => undefined
  const events = new LiveEvents({
    readStatus: () => Promise.resolve({ now: true }),
    readHistory: () => new Promise((resolve) => (giveHistory = resolve)),
    log: createLog('gateway', 'silent'),
  })
  const written: string[] = []
  const response = Object.assign(new EventEmitter(), {
    writableLength: 0,
    writeHead: () => undefined,
    write: (text: string) => written.push(text),
  })
  const request = { method: 'GET', headers: {} } as unknown as IncomingMessage
  expect(events.follow(request, response as unknown as ServerResponse)).toBe(true)
  await vi.advanceTimersByTimeAsync(2_000)
  // The `retry` field of event streams is sent before any event.
  expect(written).toEqual(['retry: 1000\n\n'])
  giveHistory({ past: true })
  await vi.advanceTimersByTimeAsync(600)
  expect(written.slice(1, 3)).toEqual([
    'event: history\ndata: {"past":true}\n\n',
    expect.stringMatching(/^id: \d+\nevent: status\ndata: {"now":true}\n\n$/),
  ])
  response.emit('close')
})
