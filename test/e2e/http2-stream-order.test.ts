import { constants } from 'node:http2'
import { beforeAll, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import {
  connectRawHttp2,
  endHeaders,
  endStream,
  fieldBlock,
  frame,
  frameTypes,
  requestFields,
  uint32,
} from '../support/http/raw-http2.ts'

// RFC 9113 section 5.1.1: each stream of a client has a greater identifier than the ones before it.

let gateway: HostedGateway

beforeAll(async () => {
  const backend = await startBackend()
  gateway = await startHosted({ UPSTREAM_URL: backend.url })
})

const request = (id: number) =>
  frame(frameTypes.headers, endHeaders | endStream, id, requestFields('GET', '/'))

test.each([
  ['was never opened', 3],
  ['was answered', 5],
])('a request with the id of a stream that %s ends the connection', async (_which, id) => {
  const raw = await connectRawHttp2(gateway.port, { cleartext: true })
  raw.send(request(5))
  await raw.waitFor(({ stream, flags }) => stream === 5 && (flags & endStream) !== 0)
  raw.send(request(id))
  const { payload } = await raw.waitFor(({ type }) => type === frameTypes.goaway)
  expect(payload.readUInt32BE(4)).toBe(constants.NGHTTP2_PROTOCOL_ERROR)
  await raw.closed
})

test('trailers on a stream that the client has reset do not end the connection', async () => {
  const raw = await connectRawHttp2(gateway.port, { cleartext: true })
  const trailers = fieldBlock([['x-sum', '1']])
  raw.send(
    frame(frameTypes.headers, endHeaders, 1, requestFields('POST', '/')),
    frame(frameTypes.rstStream, 0, 1, uint32(8)),
    frame(frameTypes.headers, endHeaders | endStream, 1, trailers),
    request(3),
  )
  await raw.waitFor(({ stream, flags }) => stream === 3 && (flags & endStream) !== 0)
  expect(raw.received.some(({ type }) => type === frameTypes.goaway)).toBe(false)
  raw.socket.destroy()
})
