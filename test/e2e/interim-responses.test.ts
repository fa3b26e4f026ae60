import type { Socket } from 'node:net'
import type { ServerHttp2Stream } from 'node:http2'
import { beforeAll, describe, expect, test } from 'vitest'
import { sendRaw } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { startRawBackend } from '../support/http/backend.ts'
import { connectHttp2 } from '../support/http/http2.ts'
import { startHttp2Backend } from '../support/http/http2-backend.ts'
import { readConversation } from '../support/http/raw-client.ts'

// A backend may send any number of interim responses, with any status, before the final one (RFC 9110 section 15.2). The tests cover how
// long the client may wait, what it receives, and how many interim responses are allowed.

type Field = readonly [name: string, value: string]
type Interim = { readonly status: number; readonly fields?: readonly Field[]; readonly count: number }

const link = ['link', '</a.css>; rel=preload'] as const
const cookie = ['set-cookie', 'a=b'] as const

/** The responses that the backend sends before its 200, and the statuses that reach clients which understand them. */
const rows: readonly (readonly [name: string, sent: readonly Interim[], passed: readonly number[]])[] = [
  ['none', [], []],
  ['many 100', [{ status: 100, count: 40 }], []],
  ['many 102', [{ status: 102, fields: [cookie], count: 40 }], Array<number>(40).fill(102)],
  ['many 103', [{ status: 103, fields: [link, cookie], count: 40 }], Array<number>(40).fill(103)],
  ['103 without a link', [{ status: 103, count: 3 }], []],
  ['many 104', [{ status: 104, fields: [['location', '/upload']], count: 40 }], Array<number>(40).fill(104)],
  ['statuses that nobody has defined', [{ status: 199, fields: [link], count: 40 }], []],
  ['a thousand', [{ status: 100, count: 1_000 }], []],
]
const tooMany: readonly Interim[] = [{ status: 103, fields: [['x-long', 'x'.repeat(1_000)]], count: 1_100 }]

const scripts = new Map<string, readonly Interim[]>([
  ...rows.map(([, sent], i) => [`/${i}`, sent] as const),
  ['/endless', tooMany],
])

function answerHttp1(socket: Socket): void {
  let received = ''
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1')
    if (!received.endsWith('\r\n\r\n')) return
    const target = received.split(' ', 2)[1] ?? ''
    received = ''
    for (const { status, fields = [], count } of scripts.get(target) ?? []) {
      const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')
      socket.write(`HTTP/1.1 ${status} Wait\r\n${lines}\r\n`.repeat(count))
    }
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone')
  })
  socket.on('error', () => undefined)
}

function answerHttp2(stream: ServerHttp2Stream, headers: Record<string, unknown>): void {
  stream.on('error', () => undefined)
  for (const { status, fields = [], count } of scripts.get(String(headers[':path'])) ?? [])
    for (let i = 0; i < count && !stream.destroyed; i++)
      stream.additionalHeaders({ ':status': status, ...Object.fromEntries(fields) })
  if (stream.destroyed) return
  stream.respond({ ':status': 200 })
  stream.end('done')
}

type Seen = {
  readonly status: number | undefined
  readonly body: string
  readonly interim: readonly number[]
}
type Client = (port: number, target: string) => Promise<Seen & { readonly text: string }>

function http1(version: string): Client {
  return async (port, target) => {
    const text = await sendRaw(port, `GET ${target} HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`)
    const { responses, interim } = readConversation(text, 'closed', false)
    return { status: responses[0]?.status, body: responses[0]?.body ?? '', interim, text }
  }
}

function http2(port: number, target: string): ReturnType<Client> {
  return new Promise((resolve) => {
    const stream = connectHttp2(port, { cleartext: true }).request({ ':path': target, ':authority': 'a' })
    const interim: number[] = []
    let body = ''
    let text = ''
    let status: number | undefined
    stream.setEncoding('utf8')
    stream.on('headers', (fields, _flags, raw: readonly string[]) => {
      interim.push(Number(fields[':status']))
      text += raw.join(' ')
    })
    stream.on('response', (fields) => (status = Number(fields[':status'])))
    stream.on('data', (chunk: string) => (body += chunk))
    stream.on('error', () => undefined)
    stream.on('close', () => resolve({ status, body, interim, text }))
  })
}

const clients: readonly (readonly [string, Client, takes: boolean])[] = [
  ['HTTP/1.1', http1('1.1'), true],
  ['HTTP/1.0', http1('1.0'), false],
  ['HTTP/2', http2, true],
]

let gateways: Record<'HTTP/1.1' | 'HTTP/2', HostedGateway>

beforeAll(async () => {
  const backend = await startRawBackend(answerHttp1)
  const http2Backend = await startHttp2Backend(answerHttp2)
  gateways = {
    'HTTP/1.1': await startHosted({ UPSTREAM_URL: backend.url }),
    'HTTP/2': await startHosted({ UPSTREAM_URL: http2Backend.url }),
  }
})

describe.each(['HTTP/1.1', 'HTTP/2'] as const)('from a backend of %s', (version) => {
  describe.each(clients)('to a client of %s', (_, ask, takes) => {
    test.each(rows.map(([name, , passed], i) => [name, i, passed] as const))('%s', async (__, i, passed) => {
      const { text, ...seen } = await ask(gateways[version].port, `/${i}`)
      expect(seen).toEqual({ status: 200, body: 'done', interim: takes ? passed : [] })
      expect(text).not.toContain('a=b')
    })

    test('more than 1 MiB of interim responses is a failure of the backend', async () => {
      expect(await ask(gateways[version].port, '/endless')).toMatchObject({ status: 502, interim: [] })
      expect(await ask(gateways[version].port, '/0')).toMatchObject({ status: 200 })
    })
  })
})
