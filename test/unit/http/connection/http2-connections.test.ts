import type { Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { createHttp2Connections } from '../../../../proxy/http/connection/http2/connections.ts'
import { settingsFrame } from '../../../../proxy/http/http2/frames.ts'
import { http2Preface } from '../../../../proxy/http/message/http2-preface.ts'
import { eventually } from '../../../support/wait/eventually.ts'

test.each([
  ['before the notice is over', 50],
  ['after that, as its handshake took long', 1],
])('a connection that opens while the gateway stops, %s, is closed', async (_when, noticeMs) => {
  const connections = createHttp2Connections(
    { maxHeaderBytes: 16_384, maxStreams: 100, sendMs: 60_000, idleMs: 60_000, headersMs: 60_000 },
    {
      isPressed: () => false,
      isProxy: () => false,
      clientOf: () => '',
      serve: () => undefined,
      onHeadersTooLarge: () => undefined,
      onMalformed: () => undefined,
      onException: () => undefined,
    },
    () => performance.now(),
  )
  connections.close(noticeMs)
  await sleep(10)
  const [near, far] = duplexPair()
  onTestFinished(() => {
    near.destroy()
    far.destroy()
  })
  connections.serve(near as unknown as Socket)
  far.resume().write(Buffer.concat([http2Preface, settingsFrame([])]))
  await eventually('the connection has ended', () => expect(far.readableEnded).toBe(true), { endMs: 2_000 })
})
