import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { connectionOpener } from '../../../../proxy/http/upstream/open-connection.ts'
import { createProbe, type Probe } from '../../../../proxy/http/upstream/servers/probe.ts'
import type { ServerPlace } from '../../../../proxy/http/upstream/servers/server.ts'
import { startBackend, startRawBackend } from '../../../support/http/backend.ts'
import { atEndOfFile } from '../../../support/run/at-end.ts'
import { authorityFile, readPair } from '../../../support/network/certificates.ts'
import { CLOSED_PORT } from '../../../support/network/ports.ts'
import { eventually } from '../../../support/wait/eventually.ts'

function probeWith(authorities?: Buffer, host?: string): Probe {
  return createProbe({ path: '/healthz?full', host }, ({ url, address }) =>
    connectionOpener(url, { authorities, address }),
  )
}

function ask(probe: Probe, url: string, address?: string, withinMs = 10_000): Promise<string | undefined> {
  const place: ServerPlace = { url: new URL(url), address }
  return probe(place, AbortSignal.timeout(withinMs))
}

test.each([
  [200, undefined],
  [204, undefined],
  [302, undefined],
  [404, 'it answers 404'],
  [503, 'it answers 503'],
])('an answer %i', async (status, problem) => {
  const backend = await startBackend((_, response) => response.writeHead(status).end())
  expect(await ask(probeWith(), `${backend.url}/prefix`)).toBe(problem)
  expect(backend.seen).toMatchObject([{ method: 'GET', url: '/healthz?full' }])
})

test('a server that is not there, hangs, breaks off or sends something else', async () => {
  expect(await ask(probeWith(), `http://127.0.0.1:${CLOSED_PORT}`)).toContain('ECONNREFUSED')
  const hung = await startRawBackend((socket) => void socket.resume())
  expect(await ask(probeWith(), hung.url, undefined, 500)).toBe('it does not answer in time')
  const broken = await startRawBackend((socket) => socket.destroy())
  expect(await ask(probeWith(), broken.url)).toEqual(expect.any(String))
  const garbage = await startRawBackend((socket) => socket.end('SSH-2.0-OpenSSH\r\n'))
  expect(await ask(probeWith(), garbage.url)).toEqual(expect.any(String))
})

test('an answer without an end is read for a while, and its connection is closed', async () => {
  const endless = await startRawBackend((socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n')
    socket.write(Buffer.alloc(1_000_000))
  })
  expect(await ask(probeWith(), endless.url)).toBe(undefined)
  await eventually('the connections of the probe are closed', () =>
    expect(endless.connections.every(({ destroyed }) => destroyed)).toBe(true),
  )
})

test('a probe connects to the address of a name, and sends another Host', async () => {
  const backend = await startBackend()
  expect(
    await ask(probeWith(undefined, 'app.example'), `http://no.example:${backend.port}`, '127.0.0.1'),
  ).toBe(undefined)
  expect(backend.seen[0]?.rawHeaders).toContain('app.example')
})

test('the certificate is verified as for requests: against the name in the URL, whatever Host is sent', async () => {
  const server = createServer(readPair('first'), (_, response) => response.end('ok'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEndOfFile(() => server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  const authorities = readFileSync(authorityFile)
  for (const host of [undefined, 'app.example'])
    expect(await ask(probeWith(authorities, host), `https://localhost:${port}`, '127.0.0.1')).toBe(undefined)
  expect(await ask(probeWith(), `https://localhost:${port}`, '127.0.0.1')).toContain('certificate')
  expect(await ask(probeWith(authorities), `https://other.example:${port}`, '127.0.0.1')).toContain(
    'altnames',
  )
})

test('a probe ends when its time is over, in any phase', async () => {
  const backend = await startBackend((_, response) => setTimeout(() => response.end(), 2))
  const probe = probeWith()
  const place: ServerPlace = { url: new URL(backend.url), address: undefined }
  for (let i = 0; i < 120; i++) {
    const giveUp = new AbortController()
    const abort = (): void => giveUp.abort()
    if (i % 4 === 0) abort()
    else if (i % 4 === 1) queueMicrotask(abort)
    else setTimeout(abort, i / 20)
    expect([undefined, 'it does not answer in time']).toContain(await probe(place, giveUp.signal))
  }
})
