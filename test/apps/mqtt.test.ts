import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { authorityFile } from '../support/network/certificates.ts'
import { runClient } from './client.ts'
import { letIn, letInWhenRefused } from './refusals.ts'
import { startNodeServer } from './server.ts'
import { setStage, type Way } from './stage.ts'

// MQTT over WebSocket, with Aedes as the broker and MQTT.js as the client. Debian's mosquitto (2.0.11) is unsuitable: if 300 messages are
// published at once with quality of service 2, its subscribers get 20, even over TCP, without a gateway and with its own client.

const { direct, ways } = setStage({
  start: async () => ({ port: await startNodeServer('mqtt.js'), probe: '/' }),
  http2: 'one of several',
  config: 'test/apps/limits/mqtt.yaml',
})

/** The number of concurrent connections per client that the rule `connections` allows. */
const CONNECTIONS = 20

const waysOfNode = ways.filter(({ protocol }) => protocol !== 'http2')
const waysOfPages = ways.filter(({ protocol }) => protocol === 'http2')

let directly: Promise<object> | undefined

async function expected(): Promise<object> {
  const seen = await (directly ??= runClient('mqtt.js', direct, ['mqtt']))
  expect(seen).toMatchObject({ kept: 'retained', large: true, will: 'gone', later: 'while away' })
  const { ordered } = seen as { ordered: string }
  expect(seen).toMatchObject({ 'many/0': ordered, 'many/1': ordered, 'many/2': ordered })
  return seen
}

test.for(waysOfNode)('MQTT clients get the same messages, $name', async (way) => {
  expect(await runClient('mqtt.js', way, ['mqtt'])).toEqual(await expected())
})

// Chromium opens a WebSocket over HTTP/1.1, on a connection of its own.
test.for(waysOfPages)('MQTT clients in a page get the same messages, $name', async (way) => {
  const { protocols, ...seen } = (await runClient('mqtt-page.js', way, ['mqtt'])) as { protocols: string[] }
  expect(seen).toEqual(await expected())
  expect(protocols).toEqual(['h2'])
})

test.for(ways)(
  'clients whose connections are refused connect later, and lose no message, $name',
  async (way) => {
    await letIn(way, 'tight')
    const script = way.protocol === 'http2' ? 'mqtt-page.js' : 'mqtt.js'
    const { value, isRefused } = await letInWhenRefused(way, 'tight', runClient(script, way, ['tight']))
    expect(value).toMatchObject(await expected())
    expect(isRefused).toBe(true)
  },
)

test.for(waysOfNode)('a client has no more than its share of connections at a time, $name', async (way) => {
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
