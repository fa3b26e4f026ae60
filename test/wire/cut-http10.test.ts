import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { startHosted } from '../support/gateway/hosted-gateway.ts'
import { startRawBackend } from '../support/http/backend.ts'
import { converse } from '../support/http/raw-client.ts'

// A truncated response of the backend, to HTTP/1.0 clients. If it has a length, the clients can tell that it is incomplete, and get the
// received part. Without a length, only a reset can tell them.

const ok = 'HTTP/1.1 200 OK\r\n'
const heads: Readonly<Record<string, string>> = {
  'a length': `${ok}Content-Length: 100000\r\n\r\n`,
  chunks: `${ok}Transfer-Encoding: chunked\r\n\r\n20000\r\n`,
  'no length': `${ok}\r\n`,
}
const ends: Readonly<Record<string, (socket: Socket) => void>> = {
  closes: (socket) => socket.end(),
  resets: (socket) => setTimeout(() => socket.resetAndDestroy(), 50),
  'goes silent': () => undefined,
}
const sizes = [0, 1, 5_000, 90_000]
const cases = Object.keys(heads).flatMap((head) =>
  Object.keys(ends).flatMap((end) => sizes.map((size) => ({ head, end, size }))),
)

test.for(cases)('a backend that sends $size bytes with $head and then $end', async ({ head, end, size }) => {
  const backend = await startRawBackend((socket) => {
    socket.on('data', () => socket.write(`${heads[head]}${'x'.repeat(size)}`, () => ends[end]?.(socket)))
  })
  const gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    // Only for silence, as an end or a reset may arrive late on a busy machine.
    ...(end === 'goes silent' && { UPSTREAM_IDLE_TIMEOUT: '300ms' }),
    RATE_LIMITING_DISABLED: '1',
  })
  const options = { from: '127.0.0.1', responses: 1, then: '' }
  const { rest, responses, ended } = await converse(
    gateway.port,
    ['GET / HTTP/1.0\r\nHost: a\r\n\r\n'],
    options,
  )
  if (head === 'a length') {
    expect(ended).toBe('closed')
    expect(rest.split('\r\n\r\n')[1]).toBe('x'.repeat(size))
  } else if (head === 'no length' && end === 'closes') {
    expect({ ended, body: responses[0]?.body }).toEqual({ ended: 'closed', body: 'x'.repeat(size) })
  } else expect(ended).toBe('reset')
})
