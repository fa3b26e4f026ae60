import { beforeAll, expect, test } from 'vitest'
import { RequestParser } from '../../proxy/http/http1/parser/request-parser.ts'
import { RequestSyntaxError } from '../../proxy/http/http1/parser/syntax-error.ts'
import { startBackend } from '../support/http/backend.ts'
import { sendRaw } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { leastTime, threadCpuUs } from '../support/load/least-time.ts'

// The attack: a value in which each byte takes longer to read than the one before. A regular expression for blanks at the end of a text
// takes quadratic time if the blanks are not at the end: 60 KB of blanks would take seconds, in which the gateway serves nobody else.

const maxMs = 1_000
const bytes = 60_000

const fillers = [' ', '\t', ',', ', ', ' ,\t', ';', ';a', '"', 'a,', 'close ', 'chunked,', '=', '0']
const names = [
  ...[
    'Connection',
    'Transfer-Encoding',
    'Expect',
    'TE',
    'Upgrade',
    'Content-Length',
    'Content-Type',
    'Accept',
  ],
  ...[
    'Via',
    'X-Forwarded-For',
    'Authorization',
    'Cookie',
    'Host',
    'Keep-Alive',
    'Max-Forwards',
    'Traceparent',
  ],
  ...['Sec-WebSocket-Key', 'X-Request-Id', 'X-A'],
]

let gateway: HostedGateway

beforeAll(async () => {
  const backend = await startBackend()
  gateway = await startHosted({ UPSTREAM_URL: backend.url, MAX_HEADER_SIZE: '64k' })
})

function filled(filler: string): string {
  return filler.repeat(Math.ceil(bytes / filler.length)).slice(0, bytes)
}

test.each(names)('a long value of %s is read in time', async (name) => {
  for (const filler of fillers) {
    const offer = name === 'Upgrade' ? 'Connection: upgrade\r\n' : ''
    const host = name === 'Host' ? '' : 'Host: a\r\n'
    const request = `GET / HTTP/1.1\r\n${host}${offer}${name}: x${filled(filler)}x\r\n\r\n`
    const tookMs = await leastTime(maxMs, async () => {
      const startedMs = performance.now()
      expect(
        await sendRaw(gateway.port, request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')),
      ).toMatch(/^HTTP\/1\.1 \d{3} /)
      return performance.now() - startedMs
    })
    expect(tookMs, JSON.stringify(filler)).toBeLessThan(maxMs)
  }
})

/** A piece for each value of a byte, made once because the tests read ten million pieces. */
const singleBytes = Array.from({ length: 256 }, (_, byte) => Buffer.of(byte))

/** Parses until the input is refused. Returns the milliseconds of CPU that it took. */
function parse(pieces: Iterable<Buffer>): number {
  const parser = new RequestParser(
    { onHead: () => undefined, onBody: () => undefined, onBodyEnd: () => undefined },
    { maxBytes: 10 * 1024 * 1024, maxFields: 100 },
  )
  return (
    threadCpuUs(() => {
      try {
        for (const piece of pieces) for (let at = 0; at < piece.length;) at = parser.execute(piece, at)
      } catch (error) {
        if (!(error instanceof RequestSyntaxError)) throw error
      }
    }) / 1000
  )
}

const head = 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'
const parts: [string, string, string][] = [
  ['a header', 'GET / HTTP/1.1\r\nX-A: ', '\r\n\r\n'],
  ['a name', 'GET / HTTP/1.1\r\nX', ': a\r\n\r\n'],
  ['a target', 'GET /', ' HTTP/1.1\r\n\r\n'],
  ['a coding', 'GET / HTTP/1.1\r\nTransfer-Encoding: ', 'x\r\n\r\n'],
  ['a length', 'GET / HTTP/1.1\r\nContent-Length: ', '\r\n\r\n'],
  ['a chunk extension', `${head}2;a=`, '\r\nhi\r\n0\r\n\r\n'],
  ['a quoted chunk extension', `${head}2;a="`, '"\r\nhi\r\n0\r\n\r\n'],
  ['a chunk size', `${head}0`, '\r\n\r\n'],
  ['a trailer', `${head}0\r\nX-A: `, 'x\r\n\r\n'],
  ['empty lines', '', 'GET / HTTP/1.1\r\n\r\n'],
]

test.each(parts)('%s that is long is parsed in time, whole and byte by byte', async (_, before, after) => {
  for (const filler of [...fillers, '\r\n', ';a=b', '\\"', '0']) {
    const text = Buffer.from(before + filled(filler) + after, 'latin1')
    const wholeMs = await leastTime(100, () => parse([text]))
    const inBytesMs = await leastTime(maxMs, () =>
      parse(Array.from(text, (byte) => singleBytes[byte] ?? text)),
    )
    expect({ filler, wholeMs }).toEqual({
      filler,
      wholeMs: expect.toSatisfy((ms: number) => ms < 100) as number,
    })
    expect(inBytesMs, JSON.stringify(filler)).toBeLessThan(maxMs)
  }
})
