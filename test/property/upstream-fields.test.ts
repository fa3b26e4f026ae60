import fc from 'fast-check'
import { Socket } from 'node:net'
import { expect, test } from 'vitest'
import { createRequestClassifier } from '../../proxy/http/fields/header-roles.ts'
import {
  lengthWithoutContent,
  protocolToAskFor,
  upstreamHeaders,
} from '../../proxy/http/forward/upstream-headers.ts'
import { RequestParser } from '../../proxy/http/http1/parser/request-parser.ts'
import { RequestSyntaxError } from '../../proxy/http/http1/parser/syntax-error.ts'
import { Http1Request } from '../../proxy/http/http1/request.ts'
import { headerListOf } from '../../proxy/http/message/header-list.ts'
import type { UpstreamRequest } from '../../proxy/http/upstream/exchange.ts'
import { requestFields } from '../../proxy/http/upstream/http2/fields.ts'
import { writeRequestHead } from '../../proxy/http/upstream/request-text.ts'
import { runs } from '../support/random/runs.ts'

// An HTTP/1 backend and an HTTP/2 backend must see the same headers: the ones that rules have seen.

const usual = [
  ...['Host', 'Accept', 'Cookie', 'Connection', 'Keep-Alive', 'TE', 'Trailer', 'Upgrade', 'Expect', 'Via'],
  ...['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Prefix', 'X-Real-IP', 'X-Request-ID'],
  ...[
    'Max-Forwards',
    'Authorization',
    'Content-Type',
    'Content-Length',
    'X-Api-Key',
    'X_Api_Key',
    'Remote-User',
  ],
  ...['If', 'Destination', 'Proxy', 'constructor', '__proto__', '1000'],
]
const name = fc.oneof(
  fc.constantFrom(...usual),
  fc.constantFrom(...usual).map((usualName) => usualName.toUpperCase()),
  fc.stringMatching(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,12}$/),
  fc.stringMatching(/^[a-zA-Z-]{70,80}$/),
)
const value = fc.oneof(
  fc.constantFrom(
    '',
    'a',
    'a: b',
    '0',
    'close',
    'x-api-key, close',
    'upgrade',
    'websocket',
    'a=1; b=2',
    'trailers',
  ),
  fc.stringMatching(/^[\t -~\x80-\xff]{0,40}$/),
)
const drawn = fc.record({
  method: fc.constantFrom('GET', 'POST', 'HEAD'),
  lines: fc.array(fc.tuple(name, value), { maxLength: 20 }),
  hasBody: fc.boolean(),
  length: fc.option(fc.integer({ min: 0, max: 99 }), { nil: undefined }),
  peerTrusted: fc.boolean(),
  clientNamed: fc.boolean(),
  withoutVia: fc.boolean(),
  keepUnusual: fc.boolean(),
  strippedPrefix: fc.constantFrom(undefined, '/app'),
  setHeaders: fc.constantFrom([], ['x-team', 'red', 'x-empty', '']),
  traceHeaders: fc.constantFrom(undefined, ['traceparent', '00-1-2-01']),
})

/** The request that the parser reads from these lines; undefined if it refuses them. */
function parsed(method: string, lines: readonly (readonly [string, string])[]): Http1Request | undefined {
  let request: Http1Request | undefined
  const parser = new RequestParser(
    {
      onHead: (head) => (request = new Http1Request(new Socket(), head, { onBodyConsumed: () => undefined })),
      onBody: () => undefined,
      onBodyEnd: () => undefined,
    },
    { maxBytes: 64 * 1024, maxFields: 1000 },
  )
  const text = lines.map(([spelling, written]) => `${spelling}: ${written}\r\n`).join('')
  try {
    parser.execute(Buffer.from(`${method} /a HTTP/1.1\r\n${text}\r\n`, 'latin1'), 0)
  } catch (error) {
    if (!(error instanceof RequestSyntaxError)) throw error
  }
  return request
}

/** Reads a head as any backend does. */
function linesOfHead(text: string): string[] {
  expect(text.endsWith('\r\n\r\n')).toBe(true)
  const lines = text.slice(0, -4).split('\r\n')
  expect(lines.join('')).not.toMatch(/[\r\n]/)
  return lines
}

function linesOfList(fields: readonly string[]): string[] {
  return fields.flatMap((text, i) => (i % 2 === 0 ? [`${text}: ${fields[i + 1] ?? ''}`] : []))
}

test('HTTP/1 and HTTP/2 backends get the same headers in the same order', () => {
  let read = 0
  fc.assert(
    fc.property(drawn, ({ method, lines, hasBody, length, setHeaders, keepUnusual, ...from }) => {
      const request = parsed(method, lines)
      if (!request) return
      read++
      const fields = upstreamHeaders(
        createRequestClassifier(['x-api-key'], keepUnusual),
        request.rawHeaders,
        {
          ...from,
          ...{
            peerAddress: '192.0.2.1',
            clientAddress: '192.0.2.2',
            scheme: 'https',
            requestId: 'id',
            host: 'a',
          },
          ...{ protocolVersion: '1.1', maxForwards: undefined, setHeaders: headerListOf(setHeaders) },
        },
      )
      const contentLength = hasBody ? length : lengthWithoutContent(request, false)
      const head: UpstreamRequest = {
        ...{ method, target: '/a', fields, hasBody, contentLength },
        ...{ acceptsTrailers: false, upgrade: undefined, logsIn: false },
      }
      const [requestLine, host, ...others] = linesOfHead(writeRequestHead(head))
      expect([requestLine, host]).toEqual([`${method} /a HTTP/1.1`, 'host: a'])
      for (const line of others) expect(line).toMatch(/^[!#$%&'*+\-.^_`|~0-9a-z]+: /)

      const pseudo = [`:method: ${method}`, ':scheme: https', ':authority: a', ':path: /a']
      const chunked = hasBody && length === undefined ? ['transfer-encoding: chunked'] : []
      const streamed = linesOfList(requestFields(head, 'https'))
      expect(streamed.slice(0, 4)).toEqual(pseudo)
      expect([...streamed.slice(4), ...chunked]).toEqual(others)

      const withTrailers = linesOfList(requestFields({ ...head, acceptsTrailers: true }, 'https'))
      expect(withTrailers).toEqual([...streamed, 'te: trailers'])
      const upgrade = protocolToAskFor(request)
      const upgrading = linesOfHead(writeRequestHead({ ...head, upgrade }))
      const framing = contentLength !== undefined || hasBody ? others.slice(-1) : []
      const before = others.slice(0, others.length - framing.length)
      expect(upgrading.slice(2)).toEqual([
        ...before,
        'connection: upgrade',
        `upgrade: ${upgrade}`,
        ...framing,
      ])
    }),
    { numRuns: runs(3000) },
  )
  expect(read).toBeGreaterThan(100)
})
