import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { tlsSettings } from '../support/network/certificates.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

/*
 * A response may arrive before the request's body is complete. If the connection ends with that response, further bytes from the client
 * must not cause a reset, because a reset would discard the part of the response that the client has not read yet (RFC 9112 section 9.6).
 */

const bodyBytes = 20_000
const text = 'early '.repeat(2_000)
const table = 'limits: [{ name: none, match: POST /refused/:who, key: path:who, requests: 1, window: 1h }]\n'

let gateways: { readonly http: HostedGateway; readonly https: HostedGateway }

beforeAll(async () => {
  const backend = await startBackend((_request, response) => response.end(text))
  const env = { UPSTREAM_URL: backend.url, CONFIG_FILE: writeConfigFile(table) }
  gateways = { http: await startHosted(env), https: await startHosted({ ...env, ...tlsSettings() }) }
})

function open(protocol: keyof typeof gateways): Socket {
  const options = { host: '127.0.0.1', port: gateways[protocol].port }
  return protocol === 'http' ? connect(options) : connectTls({ ...options, rejectUnauthorized: false })
}

/** Sends a part of a body, then the rest when the response must have arrived, and starts reading only after that. */
async function sendSlowly(protocol: keyof typeof gateways, head: string): Promise<string> {
  const socket = open(protocol)
  await once(socket, protocol === 'http' ? 'connect' : 'secureConnect')
  let failure = ''
  socket.on('error', ({ message }) => (failure = message))
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.write(`${head}Content-Length: ${bodyBytes}\r\n\r\n${'x'.repeat(1_000)}`)
  for (let sent = 1_000; sent < bodyBytes; sent += 1_000) {
    await sleep(sent === 1_000 ? 200 : 5)
    socket.write('x'.repeat(1_000))
  }
  let received = ''
  socket.on('data', (bytes: Buffer) => (received += bytes.toString('latin1')))
  await closed
  return received + failure
}

describe.each(['http', 'https'] as const)('over %s, a client that sends on gets the whole of', (protocol) => {
  test.concurrent.each([
    ['HTTP/1.0', 'POST /early HTTP/1.0\r\nHost: a\r\n'],
    ['HTTP/1.1 with close', 'POST /early HTTP/1.1\r\nHost: a\r\nConnection: close\r\n'],
  ])("the backend's early answer, %s", async (_name, head) => {
    const received = await sendSlowly(protocol, head)
    expect(received).toMatch(/^HTTP\/1\.1 200 /)
    expect(received.endsWith(text)).toBe(true)
  })

  test.concurrent('a refusal', async () => {
    const head = `POST /refused/${protocol} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n`
    await sendSlowly(protocol, head)
    expect(await sendSlowly(protocol, head)).toMatch(/^HTTP\/1\.1 429 [^]*"code":429[^]*\}$/)
  })
})
