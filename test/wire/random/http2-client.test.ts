import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { readFileSync } from 'node:fs'
import { once } from 'node:events'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { tlsSettings } from '../../support/network/certificates.ts'
import { converseHttp2 } from './http2-client.ts'
import type { Conversation, Exchange } from './plan.ts'

const SILENCE_MS = 45_000
const PIECE = 1000
const PIECES = 20

afterEach(() => {
  vi.useRealTimers()
})

const delivery = { seed: 1, most: PIECE, pauseShare: 0, pauseMs: 0 }
const answer: Exchange['answer'] = {
  interim: [],
  status: 200,
  framing: 'chunked',
  bytes: PIECE * PIECES,
  chunkMost: PIECE,
  trailers: false,
  early: false,
  delayMs: 0,
  delivery,
  then: 'keep',
  broken: undefined,
  barrier: 0,
}
const exchange: Exchange = {
  id: 1,
  kind: 'forward',
  method: 'GET',
  version: '1.1',
  asksToClose: false,
  upload: undefined,
  answer,
  tunnel: undefined,
  cancel: undefined,
}
const conversation: Conversation = {
  protocol: 'h2',
  address: '127.0.0.1',
  exchanges: [exchange],
  window: 1,
  delivery,
  reading: { pauseShare: 0, pauseMs: 0, stallAfterBytes: 0, stallMs: 0 },
  halfCloses: false,
  // So when a piece has been written, the client must have read the pieces before it.
  streamWindow: PIECE,
}

async function listen(answerWith: (stream: ServerHttp2Stream) => Promise<void>): Promise<number> {
  const { TLS_CERT_FILE = '', TLS_KEY_FILE = '' } = tlsSettings()
  const server = createSecureServer({ cert: readFileSync(TLS_CERT_FILE), key: readFileSync(TLS_KEY_FILE) })
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': 200 })
    void answerWith(stream)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

test('a client that reads for longer than its patience is not silent as long as pieces come', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const port = await listen(async (stream) => {
    for (let sent = 0; sent < PIECES; sent++) {
      await new Promise((resolve) => stream.write(Buffer.alloc(PIECE), resolve))
      vi.advanceTimersByTime(SILENCE_MS / 5)
    }
    stream.end()
  })
  const [outcome] = await converseHttp2(port, conversation, SILENCE_MS)
  expect(outcome).toMatchObject({ complete: true, bodyBytes: PIECE * PIECES })
})

test('a client that hears nothing for all its patience leaves', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const port = await listen(async (stream) => {
    await new Promise((resolve) => stream.write(Buffer.alloc(PIECE), resolve))
    await new Promise((resolve) => stream.write(Buffer.alloc(PIECE), resolve))
    vi.advanceTimersByTime(SILENCE_MS)
  })
  const [outcome] = await converseHttp2(port, conversation, SILENCE_MS)
  expect(outcome).toMatchObject({ complete: false, ended: 'silent' })
})
