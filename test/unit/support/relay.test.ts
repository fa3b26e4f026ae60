import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, expect, test } from 'vitest'
import { startRawBackend } from '../../support/http/backend.ts'
import { startRelay, type Relay } from '../../support/network/relay.ts'
import { eventually } from '../../support/wait/eventually.ts'

/* The relay breaks connections for other tests, which prove something only if the relay works as they assume. */

let relay: Relay
/** Everything that has arrived at the target. The target answers each piece with the same text in capitals. */
let arrived: string

beforeEach(async () => {
  arrived = ''
  const target = await startRawBackend((socket) => {
    socket.on('data', (bytes) => {
      arrived += bytes.toString()
      socket.write(bytes.toString().toUpperCase())
    })
    socket.on('end', () => socket.end())
  })
  relay = await startRelay(target.port)
})

type Client = { readonly socket: Socket; heard: string; ended?: 'end' | 'reset' }

async function startClient(): Promise<Client> {
  const socket = connect(relay.port, '127.0.0.1')
  const client: Client = { socket, heard: '' }
  socket.on('data', (bytes) => (client.heard += bytes.toString()))
  socket.on('end', () => (client.ended = 'end'))
  socket.on('error', () => (client.ended = 'reset'))
  await once(socket, 'connect')
  return client
}

const hears = (client: Client, text: string): Promise<void> =>
  eventually(`it hears ${text}`, () => client.heard === text)

test('the relay passes on both directions, and the end of each', async () => {
  const client = await startClient()
  client.socket.write('a')
  await hears(client, 'A')
  client.socket.end('b')
  await hears(client, 'AB')
  await eventually('it ends', () => client.ended === 'end')
  await eventually('nothing is left', () => relay.size === 0)
})

test('delays, in order, without adding up', async () => {
  const client = await startClient()
  await relay.set({ kind: 'delay', delayMs: 300 })
  const sentMs = performance.now()
  for (const letter of 'abcdef') {
    client.socket.write(letter)
    await sleep(5)
  }
  await hears(client, 'ABCDEF')
  const tookMs = performance.now() - sentMs
  expect(tookMs).toBeGreaterThan(600)
  expect(tookMs).toBeLessThan(1_500)
})

test('the relay cuts, resets and refuses connections, and accepts new ones again', async () => {
  const cut = await startClient()
  relay.cut()
  await eventually('it has ended', () => cut.ended === 'end')
  const reset = await startClient()
  await eventually('both sides are there', () => relay.size === 1)
  relay.reset()
  await eventually('it was reset', () => reset.ended === 'reset')

  await relay.set({ kind: 'refuse' })
  await expect(startClient()).rejects.toThrow('ECONNREFUSED')
  await relay.set({ kind: 'none' })
  const client = await startClient()
  client.socket.write('a')
  await hears(client, 'A')
})

test('loses replies, and never delivers later ones', async () => {
  const client = await startClient()
  await relay.set({ kind: 'swallow-replies' })
  client.socket.write('a')
  await eventually('the request arrives', () => arrived === 'a')
  await sleep(30)
  expect(client.heard).toBe('')
  await relay.set({ kind: 'none' })
  await eventually('it was reset', () => client.ended === 'reset')
  expect(client.heard).toBe('')
})

test('the relay drops all data without closing connections', async () => {
  const client = await startClient()
  await relay.set({ kind: 'swallow' })
  client.socket.write('a')
  const late = await startClient()
  late.socket.write('b')
  await sleep(30)
  expect([arrived, client.heard, late.heard, client.ended]).toEqual(['', '', '', undefined])
})

test('the relay forgets the current connections, and only those', async () => {
  const old = await startClient()
  old.socket.write('a')
  await hears(old, 'A')
  relay.strand()
  old.socket.write('b')
  const young = await startClient()
  young.socket.write('c')
  await hears(young, 'C')
  expect([arrived, old.heard, old.ended]).toEqual(['ac', 'A', undefined])
})

test('the relay trickles', async () => {
  const client = await startClient()
  const pieces: string[] = []
  client.socket.on('data', (bytes) => pieces.push(bytes.toString()))
  await relay.set({ kind: 'trickle', bytes: 2, everyMs: 10 })
  client.socket.write('abcde')
  await hears(client, 'ABCDE')
  expect(pieces.length).toBeGreaterThanOrEqual(3)
})

test('pauses, and delivers everything afterwards', async () => {
  const client = await startClient()
  await relay.set({ kind: 'pause' })
  client.socket.write('a')
  await sleep(30)
  expect(arrived).toBe('')
  await relay.set({ kind: 'none' })
  await hears(client, 'A')
})
