import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { resetSocket } from '../../../../proxy/http/message/reset-socket.ts'
import { eventually } from '../../../support/wait/eventually.ts'

/** More than the system buffers for a client that does not read. */
const MUCH = Buffer.alloc(16 * 1024 * 1024)

const writeMuch = (socket: Socket): void => {
  socket.write(MUCH)
}
const writeMuchAndEnd = (socket: Socket): void => {
  socket.write(MUCH)
  socket.end()
}
const end = (socket: Socket): void => {
  socket.end()
}
const endWithBytes = (socket: Socket): void => {
  socket.end('all')
}

const states: readonly (readonly [string, string, (socket: Socket) => void, () => Promise<void>])[] = [
  ['that has sent nothing', 'ECONNRESET', () => undefined, () => Promise.resolve()],
  ['with bytes that wait', 'ECONNRESET', writeMuch, () => Promise.resolve()],
  ['with bytes that wait, after end()', 'ECONNRESET', writeMuchAndEnd, () => nextTurn()],
  ['a microtask after end()', 'end', end, () => Promise.resolve()],
  ['a microtask after end() with bytes', 'end', endWithBytes, () => Promise.resolve()],
  ['a turn after end()', 'end', end, () => nextTurn()],
]

test.for(states)('a connection %s is closed for the system as well', async ([, seenAs, prepare, pause]) => {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const client = connect({
    port: (server.address() as AddressInfo).port,
    host: '127.0.0.1',
    allowHalfOpen: true,
  })
  onTestFinished(() => void client.destroy())
  const [socket] = (await once(server, 'connection')) as [Socket]
  const errors: Error[] = []
  socket.on('error', (error) => errors.push(error))
  prepare(socket)
  await pause()
  resetSocket(socket)
  const seen = await new Promise((resolve) => {
    client.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code))
    client.on('end', () => resolve('end'))
    client.resume()
  })
  expect(seen).toBe(seenAs)
  expect(errors).toEqual([])
  await eventually('its handle is closed', () => expect(activeHandles()).not.toContain(socket))
})

function activeHandles(): object[] {
  return (process as unknown as { _getActiveHandles(): object[] })._getActiveHandles()
}
