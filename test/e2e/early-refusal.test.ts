import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { startRawBackend } from '../support/http/backend.ts'
import { startHosted } from '../support/gateway/hosted-gateway.ts'

// A backend refuses an upload by its head, and closes the connection with unread bytes, so the system resets the connection after the
// response. The client must get the response, and not a 502 because of the reset.

const refusal = 'HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig'
const uploads = 60

/** Everything received for an upload in many pieces. The connection ends with the response, even if the upload is complete before. */
function upload(port: number): Promise<string> {
  return new Promise((resolve) => {
    let received = ''
    const socket = connect(port, '127.0.0.1')
    const piece = Buffer.alloc(16 * 1024, 'x')
    let pieces = 0
    const send = (): void => {
      while (pieces < 200 && !socket.destroyed) {
        pieces++
        if (!socket.write(piece)) return
      }
    }
    socket.on('drain', send)
    socket.on('data', (chunk) => (received += chunk.toString('latin1')))
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(received))
    socket.write(
      `POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${200 * piece.length}\r\n\r\n`,
    )
    send()
  })
}

test('an early refusal reaches the client although the backend resets the connection after it', async () => {
  const backend = await startRawBackend((socket) => {
    socket.once('data', () => {
      socket.pause()
      socket.write(refusal, () => socket.destroy())
    })
  })
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  const answers = new Map<string, number>()
  for (let i = 0; i < uploads; i++) {
    const received = await upload(gateway.port)
    const answer = received.slice(0, received.indexOf('\r\n'))
    answers.set(answer, (answers.get(answer) ?? 0) + 1)
  }
  expect(Object.fromEntries(answers)).toEqual({ 'HTTP/1.1 413 Payload Too Large': uploads })
})

// The system reports the reset only to a failing write. The read after it just finds the end, as for a response without a length that was
// not reset.
test('an early refusal truncated by a reset is not taken for complete', async () => {
  const backend = await startRawBackend((socket) => {
    socket.once('data', () => {
      socket.pause()
      socket.write('HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n\r\na part', () =>
        socket.resetAndDestroy(),
      )
    })
  })
  const gateway = await startHosted({ UPSTREAM_URL: backend.url })
  for (let i = 0; i < uploads; i++) expect(await upload(gateway.port)).not.toMatch(/\r\n0\r\n\r\n$/)
})
