import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { authorityFile } from '../support/network/certificates.ts'
import { runClient } from './client.ts'
import { startNodeServer } from './server.ts'
import { setStage, type Way } from './stage.ts'

// MQTT over WebSocket: Aedes as the broker, and MQTT.js as its client. Not Debian's mosquitto (2.0.11): of 300 messages that are published
// at once with quality of service 2 its subscribers get 20, also over TCP, without a gateway and with its own client.

const { direct, ways } = setStage({
  start: async () => ({ port: await startNodeServer('mqtt.js'), probe: '/' }),
  http2: false,
  config: 'test/apps/limits/mqtt.yaml',
})

/** The rule `connections` allows so many to a client at a time. */
const CONNECTIONS = 20

let directly: Promise<object> | undefined

test.for(ways)('MQTT clients get the same messages, $name', async (way) => {
  const expected = await (directly ??= runClient('mqtt.js', direct))
  expect(expected).toMatchObject({ kept: 'retained', large: true, will: 'gone', later: 'while away' })
  const { ordered } = expected as { ordered: string }
  expect(expected).toMatchObject({ 'many/0': ordered, 'many/1': ordered, 'many/2': ordered })
  expect(await runClient('mqtt.js', way)).toEqual(expected)
})

test.for(ways)('a client has no more than its share of connections at a time, $name', async (way) => {
  const opened = await Promise.all(Array.from({ length: 2 * CONNECTIONS }, () => open(way)))
  const statuses = opened.map(({ status }) => status).toSorted()
  expect(statuses).toEqual(statuses.map((_, place) => (place < CONNECTIONS ? 101 : 429)))
  for (const { socket } of opened) socket.terminate()
})

/** Resolves with 101, or the status of the refusal. */
async function open(way: Way): Promise<{ status: number; socket: WebSocket }> {
  const ca = readFileSync(authorityFile)
  const socket = new WebSocket(`${way.origin.replace('http', 'ws')}/mqtt`, 'mqtt', { ca })
  socket.on('error', () => undefined)
  const status = await Promise.race([
    once(socket, 'open').then(() => 101),
    once(socket, 'unexpected-response').then(
      ([, response]) => (response as { statusCode: number }).statusCode,
    ),
  ])
  return { status, socket }
}
