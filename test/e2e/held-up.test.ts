import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { startBackend, startRawBackend } from '../support/http/backend.ts'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'

// An overloaded machine, or a laptop that sleeps, may stop a process for longer than its timeouts. When the process resumes, the timers run
// first. Data that has arrived by then, but has not been read, must not count as late.

const timeout = '1s'
const heldUpMs = 1_400

/** Stops the gateway once it waits, as the process must be stopped while its timeout runs. */
async function holdUp(gateway: GatewayProcess, meanwhile: () => void): Promise<void> {
  await sleep(50)
  gateway.process.child.kill('SIGSTOP')
  meanwhile()
  await sleep(heldUpMs)
  gateway.process.child.kill('SIGCONT')
}

/** The status line of the response. */
async function readStatusLine(socket: Socket): Promise<string> {
  let received = ''
  for await (const chunk of socket) {
    received += String(chunk)
    if (received.includes('\r\n')) break
  }
  return received.slice(0, received.indexOf('\r\n'))
}

test('a response that has arrived is not a timeout of the backend', async () => {
  const backend = await startRawBackend((socket) => {
    socket.once('data', () => {
      void holdUp(gateway, () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
    })
  })
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, UPSTREAM_TIMEOUT: timeout })
  expect(await gateway.send('GET', '/')).toMatchObject({ status: 200, body: 'ok' })
})

test('a body that has arrived is not too slow', async () => {
  const backend = await startBackend()
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, BODY_TIMEOUT: timeout })
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab')
  await holdUp(gateway, () => socket.write('cd'))
  expect(await readStatusLine(socket)).toBe('HTTP/1.1 200 OK')
  socket.destroy()
})
