import { once } from 'node:events'
import { connect as connectTcp, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { pauseReading } from '../../../../proxy/http/message/pause-reading.ts'
import { readPair } from '../../../support/network/certificates.ts'
import { eventually } from '../../../support/wait/eventually.ts'

const BYTES = 1024 * 1024

/** The server's end of a connection, and the client's. */
async function open(tls: boolean): Promise<{ readonly side: Socket; readonly client: Socket }> {
  const server: Server = tls ? createTlsServer(readPair('first')) : createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, tls ? 'secureConnection' : 'connection') as Promise<[Socket]>
  const { port } = server.address() as AddressInfo
  const client = tls
    ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    : connectTcp(port, '127.0.0.1')
  client.on('error', () => undefined)
  const [side] = await accepted
  onTestFinished(() => {
    side.destroy()
    client.destroy()
    server.close()
  })
  return { side, client }
}

test('a paused connection is not read, and loses nothing', async () => {
  const { side, client } = await open(false)
  let bytes = 0
  side.on('data', (piece: Buffer) => {
    bytes += piece.length
    pauseReading(side)
  })
  client.write(Buffer.alloc(BYTES))
  await eventually('the first read', () => expect(bytes).toBeGreaterThan(0))
  for (let reads = 0; reads < 3; reads++) {
    const before = bytes
    // Node would continue to read within a few turns.
    await sleep(50)
    expect([bytes, side.readableLength]).toEqual([before, 0])
    side.resume()
    await eventually('the next read', () => expect(bytes).toBeGreaterThan(before))
  }
  side.removeAllListeners('data')
  side.on('data', (piece: Buffer) => (bytes += piece.length))
  side.resume()
  await eventually('all of it', () => expect(bytes).toBe(BYTES))
})

test.each([
  ['TCP', false],
  ['TLS', true],
])('a connection over %s goes on that was paused while it waited, several times', async (_, tls) => {
  const { side, client } = await open(tls)
  let text = ''
  side.on('data', (piece: Buffer) => (text += piece.toString()))
  for (let i = 0; i < 5; i++) {
    await sleep(5)
    pauseReading(side)
    pauseReading(side)
    client.write(`${i}`)
    await sleep(20)
    side.resume()
    await eventually('the byte arrives', () => expect(text).toHaveLength(i + 1))
  }
  pauseReading(side)
  const ended = once(side, 'end')
  client.end('.')
  side.resume()
  await ended
  expect(text).toBe('01234.')
})

test('a paused connection that becomes a tunnel is read by it', async () => {
  const { side, client } = await open(false)
  const ignore = (): void => pauseReading(side)
  side.on('data', ignore)
  client.write('first')
  await eventually('it is paused', () => expect(side.isPaused()).toBe(true))
  side.off('data', ignore)
  const target = new PassThrough()
  side.pipe(target)
  client.end(Buffer.alloc(BYTES))
  let bytes = 0
  for await (const piece of target) bytes += (piece as Buffer).length
  expect(bytes).toBe(BYTES)
})

test('a connection that has closed can be paused', async () => {
  const { side } = await open(false)
  side.destroy()
  await once(side, 'close')
  expect(() => pauseReading(side)).not.toThrow()
})
