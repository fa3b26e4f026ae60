import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import {
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
  type ServerResponse,
} from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect } from 'node:http2'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend, type Backend } from '../support/http/backend.ts'
import { authorityFile, tlsSettings } from '../support/network/certificates.ts'
import { startGateway } from '../support/gateway/gateway.ts'
import { startWanLink } from '../support/network/wan-link.ts'
import { eventually } from '../support/wait/eventually.ts'

const ca = readFileSync(authorityFile)
const downloads = 40
const bodyBytes = 300_000
const bytesPerSecond = 100_000
const body = Buffer.alloc(bodyBytes, 'x')

let backend: Backend
const held: ServerResponse[] = []

beforeAll(async () => {
  backend = await startBackend((request, response) => {
    if (request.url === '/held') held.push(response)
    else if (request.url === '/by-length') response.writeHead(200, { 'content-length': bodyBytes }).end(body)
    else {
      response.write(body.subarray(0, 1_000))
      response.end(body.subarray(1_000))
    }
  })
})

/** A download: when it has begun, and how it ended, as `whole` or after how many bytes. */
type Download = { readonly begun: Promise<unknown>; readonly outcome: Promise<string> }

function overHttp1(request: typeof httpRequest, port: number, path: string): Download {
  const options: RequestOptions & { ca: Buffer } = {
    port,
    host: 'localhost',
    family: 4,
    path,
    agent: false,
    ca,
  }
  const sent = request(options).end()
  const begun = once(sent, 'response') as Promise<[IncomingMessage]>
  const outcome = begun.then(
    ([response]) =>
      new Promise<string>((resolve) => {
        let bytes = 0
        response.on('data', (chunk: Buffer) => (bytes += chunk.length))
        response.on('error', () => undefined)
        response.on('close', () =>
          resolve(response.complete && bytes === bodyBytes ? 'whole' : `${bytes} bytes`),
        )
      }),
  )
  return { begun, outcome }
}

function overHttp2(port: number, path: string): Download {
  const session = connect(`https://127.0.0.1:${port}`, { ca })
  session.on('error', () => undefined)
  const stream = session.request({ ':path': path })
  let bytes = 0
  let ended = false
  stream.on('data', (chunk: Buffer) => (bytes += chunk.length))
  stream.on('end', () => (ended = true))
  stream.on('error', () => undefined)
  const outcome = new Promise<string>((resolve) => {
    stream.on('close', () => {
      session.close()
      const isWhole = ended && stream.rstCode === 0 && bytes === bodyBytes
      resolve(isWhole ? 'whole' : `${bytes} bytes, reset with ${stream.rstCode}`)
    })
  })
  return { begun: once(stream, 'response'), outcome }
}

const protocols: [string, Record<string, string>, (port: number, path: string) => Download][] = [
  ['HTTP', {}, (port, path) => overHttp1(httpRequest, port, path)],
  ['HTTPS', tlsSettings(), (port, path) => overHttp1(httpsRequest, port, path)],
  ['HTTP/2', tlsSettings(), overHttp2],
]

describe.each(protocols)('SIGTERM in the middle of downloads over %s', (_, settings, download) => {
  test('lets all of them end whole within the grace period', async () => {
    const gateway = await startGateway({ UPSTREAM_URL: backend.url, SHUTDOWN_GRACE: '60s', ...settings })
    const port = await startWanLink(gateway.port, bytesPerSecond)
    const begun = Array.from({ length: downloads }, (_unused, i) =>
      download(port, i % 2 === 0 ? '/by-length' : '/chunked'),
    )
    await Promise.all(begun.map((each) => each.begun))
    const exit = gateway.process.stop('SIGTERM')
    const outcomes = await Promise.all(begun.map(({ outcome }) => outcome))
    expect(new Set(outcomes)).toEqual(new Set(['whole']))
    expect(await exit).toBe(0)
    expect(gateway.process.output()).not.toMatch(/request aborted|closed the remaining connections/)
  })

  test('the log says how many downloads were cut off when the grace period ended', async () => {
    const gateway = await startGateway({ UPSTREAM_URL: backend.url, SHUTDOWN_GRACE: '100ms', ...settings })
    const port = await startWanLink(gateway.port, 20_000)
    const begun = Array.from({ length: 5 }, () => download(port, '/by-length'))
    await Promise.all(begun.map((each) => each.begun))
    expect(await gateway.process.stop('SIGTERM')).toBe(0)
    expect(await Promise.all(begun.map(({ outcome }) => outcome))).not.toContain('whole')
    expect(gateway.process.output()).toMatch(
      /"level":"warn",.*"connections":5,"msg":"SHUTDOWN_GRACE expired: closed the remaining connections"/,
    )
  })
})

describe.each([
  ['HTTP', {}],
  ['HTTPS', tlsSettings()],
] as [string, Record<string, string>][])('over %s', (protocol, settings) => {
  async function open(
    port: number,
  ): Promise<{ socket: Socket; received: () => string; ended: Promise<unknown> }> {
    const socket =
      protocol === 'HTTPS' ? connectTls({ port, host: 'localhost', ca }) : connectTcp(port, 'localhost')
    await once(socket, protocol === 'HTTPS' ? 'secureConnect' : 'connect')
    let text = ''
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
    return { socket, received: () => text, ended: once(socket, 'close') }
  }

  async function untilHeld(count: number): Promise<ServerResponse[]> {
    await eventually(`${count} downloads are held`, () => held.length >= count)
    return held.splice(0)
  }

  test('requests in flight at SIGTERM, and later ones, are answered, and then their connections closed', async () => {
    const gateway = await startGateway({ UPSTREAM_URL: backend.url, ...settings })
    const get = 'GET /held HTTP/1.1\r\nHost: a\r\n\r\n'
    const expecting =
      'POST /by-length HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nbody'
    const [inFlight, pipelined, begun] = [
      await open(gateway.port),
      await open(gateway.port),
      await open(gateway.port),
    ]
    inFlight.socket.write(get)
    pipelined.socket.write(get + get)
    begun.socket.write(expecting.slice(0, 40))
    const responses = await untilHeld(2)
    const exit = gateway.process.stop('SIGTERM')
    await gateway.process.waitForLine(/"msg":"stopping"/)
    begun.socket.write(expecting.slice(40))
    for (const response of responses) response.end('answer')
    for (const response of await untilHeld(1)) response.end('answer')
    await Promise.all([inFlight.ended, pipelined.ended, begun.ended])
    expect(inFlight.received()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*connection: close\r\n[^]*answer$/i)
    expect(pipelined.received().match(/^connection: .*$/gim)).toEqual([
      'Connection: keep-alive',
      'Connection: close',
    ])
    expect(begun.received()).toMatch(
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n[^]*connection: close\r\n/i,
    )
    expect(await exit).toBe(0)
  })
})
