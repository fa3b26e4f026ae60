import { expect, test } from 'vitest'
import { send, sendRaw } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { echo, startHttp2Backend, type Http2Backend } from '../support/http/http2-backend.ts'
import { authorityFile } from '../support/network/certificates.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// Requests that fail because of what they ask for say nothing about the server: with them, a client could eject one server after another.

const handshake =
  'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

async function startBefore(servers: readonly Http2Backend[]): Promise<HostedGateway> {
  const urls = servers.map(({ url }) => url).join(', ')
  const yaml = `routes: [{ name: r, upstream: [${urls}], balance: round-robin }]\n`
  return startHosted({
    CONFIG_FILE: writeConfigFile(yaml),
    RATE_LIMITING_DISABLED: '1',
    UPSTREAM_CA_FILE: authorityFile,
  })
}

async function availableServers({ adminPort }: HostedGateway): Promise<string | undefined> {
  const { body } = await send(adminPort, 'GET', '/metrics')
  return /sluice_upstream_servers\{upstream="r",state="available"\} (\d+)/.exec(body)?.[1]
}

test.each([
  ['h2c://', false],
  ['https://', true],
])('WebSocket handshakes eject no server that only speaks HTTP/2, by %s', async (_, tls) => {
  const servers = await Promise.all([1, 2, 3].map(() => startHttp2Backend(echo, { tls })))
  const gateway = await startBefore(servers)
  const replies = await Promise.all(Array.from({ length: 9 }, () => sendRaw(gateway.port, handshake)))
  expect(new Set(replies.map((reply) => reply.split('\r\n')[0]))).toEqual(
    new Set(['HTTP/1.1 502 Bad Gateway']),
  )
  expect(servers.flatMap(({ seen }) => seen)).toEqual([])
  expect(await availableServers(gateway)).toBe('3')
  await gateway.waitForLine(/"reason":"[^"]*HTTP\/1\.1/)
})

test('requests whose streams the servers reset eject no server', async () => {
  const answer: typeof echo = (stream, headers) => {
    if (headers[':path'] === '/bad') stream.close(1)
    else echo(stream, headers)
  }
  const servers = await Promise.all([1, 2, 3].map(() => startHttp2Backend(answer)))
  const gateway = await startBefore(servers)
  for (let i = 0; i < 9; i++) expect((await gateway.send('GET', '/bad')).status).toBe(502)
  expect(await availableServers(gateway)).toBe('3')
  expect((await gateway.send('GET', '/good')).status).toBe(200)
})

test('requests for which the servers close the connection, and say why, eject no server', async () => {
  const answer: typeof echo = (stream) => {
    stream.session?.goaway(11)
    stream.session?.destroy()
  }
  const servers = await Promise.all([1, 2, 3].map(() => startHttp2Backend(answer)))
  const gateway = await startBefore(servers)
  for (let i = 0; i < 9; i++) expect((await gateway.send('POST', '/bad')).status).toBe(502)
  expect(await availableServers(gateway)).toBe('3')
})
