import { expect, test } from 'vitest'
import { runClient } from './client.ts'
import { startNodeServer } from './server.ts'
import { setStage } from './stage.ts'

// socket.io and its client: polling, the upgrade to WebSocket, binary messages, reconnection.

const { direct, ways } = setStage({
  start: async () => ({ port: await startNodeServer('socket-io.js'), probe: '/' }),
  http2: false,
})

let directly: Promise<object> | undefined

test.for(ways)('a Socket.IO client gets the same messages, $name', async (way) => {
  const expected = await (directly ??= runClient('socket-io.js', direct))
  expect(expected).toMatchObject({
    polling: { transport: 'polling', bytes: true, heard: 'hello', after: 'again' },
    websocket: { transport: 'websocket', bytes: true, heard: 'hello', after: 'again' },
    'polling, then websocket': { transport: 'websocket', bytes: true, isAnother: true },
  })
  expect(await runClient('socket-io.js', way)).toEqual(expected)
})
