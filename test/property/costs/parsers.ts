import { countWholeRequests } from '../../../proxy/http/http1/pipelined-bytes.ts'
import type { HeadLimits } from '../../../proxy/http/http1/parser/head-size.ts'
import { RequestParser } from '../../../proxy/http/http1/parser/request-parser.ts'
import { RequestSyntaxError } from '../../../proxy/http/http1/parser/syntax-error.ts'
import { headersOf } from '../../../proxy/http/message/headers.ts'
import { countFields } from '../../../proxy/request/request-head.ts'
import { openText, type ByteReader, type CostRow } from '../../support/cost/row.ts'

/** The default of `MAX_HEADER_SIZE`, and the maximum number of headers. */
const headLimits = { maxBytes: 16 * 1024, maxFields: 100 }

function openRequests(limits: HeadLimits): ByteReader {
  const kept: unknown[] = []
  let passedOn = 0
  const parser = new RequestParser(
    {
      onHead: (head) => void kept.push(head, headersOf(head.fields)),
      onBody: () => passedOn++,
      onBodyEnd: (trailers) => void kept.push(trailers),
    },
    limits,
  )
  return {
    take(piece) {
      for (let at = 0; at < piece.length;) at = parser.execute(piece, at)
      Object.assign(this, { parser, kept, passedOn })
    },
  }
}

const requests = {
  largestBytes: headLimits.maxBytes,
  open: () => openRequests(headLimits),
  refusals: [RequestSyntaxError],
}
const chunked = 'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n'
const fieldAtoms = [
  'a',
  '{n}',
  ':',
  ' ',
  '\t',
  '\r\n',
  ',',
  'cookie',
  'connection',
  'content-length:1',
  ';',
  '=',
]
const lineAtoms = ['a', '/', ':', ' ', '\t', ',', ';', '=', '%', '@', '0', '[', '.', '"', '\\', '\xe9']

/** The worst known contents of a single line of a head. */
const lines: Readonly<Record<string, readonly [before: string, after: string, ...units: string[]]>> = {
  method: ['', ' / HTTP/1.1\r\n\r\n', 'G', 'GET', '-'],
  target: ['GET /', ' HTTP/1.1\r\n\r\n', 'a', '/', '%', '[', ' '],
  'absolute target': ['GET http://', ' HTTP/1.1\r\n\r\n', 'a', '@', ':', 'a@', '.'],
  version: ['GET / HTTP/', '\r\n\r\n', '1', '.', '1.'],
  name: ['GET / HTTP/1.1\r\n', ': a\r\n\r\n', 'a', '-', '~'],
  value: ['GET / HTTP/1.1\r\nX: ', 'x\r\n\r\n', 'a', ' ', '\t', 'a ', ',', '\xe9'],
  length: ['GET / HTTP/1.1\r\nContent-Length: ', '\r\n\r\n', '9', '0', '1', ' '],
  coding: ['GET / HTTP/1.1\r\nTransfer-Encoding: ', 'chunked\r\n\r\n', ',', 'a,', ' ', '\t,'],
  connection: ['GET / HTTP/1.1\r\nConnection: ', '\r\n\r\n', ',', 'a{n},', ' , ', 'close,'],
}

export const rows: readonly CostRow[] = [
  {
    ...requests,
    name: 'lines of the head of a request',
    units: ['a:\r\n', 'a{n}:\r\n', 'cookie:a\r\n', 'connection:a\r\n', 'transfer-encoding:,\r\n'],
    atoms: fieldAtoms,
    wrap: (content) => `GET / HTTP/1.1\r\nHost: a\r\n${content}\r\n`,
  },
  {
    ...requests,
    name: 'lines of a head that may have many headers',
    open: () => openRequests({ ...headLimits, maxFields: 10_000 }),
    units: [
      'a:\r\n',
      'a{n}:\r\n',
      'a:b\r\n',
      'cookie:a\r\n',
      'set-cookie:a\r\n',
      'connection:a\r\n',
      '{n}:\r\n',
      '1{n}0:\r\n',
    ],
    atoms: fieldAtoms,
    wrap: (content) => `GET / HTTP/1.1\r\nHost: a\r\n${content}\r\n`,
  },
  {
    ...requests,
    name: 'a few headers whose names are numbers',
    largestBytes: 64,
    units: ['1{n}00:\r\n', '{n}:\r\n'],
    atoms: ['1', '0', '{n}', ':', '\r\n'],
    wrap: (content) => `GET / HTTP/1.1\r\n${content}\r\n`,
    // The memory of the request itself.
    keptBytes: 2048,
  },
  ...Object.entries(lines).map(([name, [before, after, ...units]]) => ({
    ...requests,
    name: `the ${name} of a request`,
    units,
    atoms: lineAtoms,
    wrap: (content: string) => before + content + after,
  })),
  {
    ...requests,
    name: 'blank lines before a request',
    units: ['\r\n', '\r', '\n', ' '],
    atoms: ['\r\n', '\r', '\n', '\0'],
    wrap: (content) => `${content}GET / HTTP/1.1\r\n\r\n`,
  },
  {
    ...requests,
    name: 'lines of the trailers of a request',
    units: ['a:\r\n', 'a{n}:\r\n'],
    atoms: ['a', '{n}', ':', ' ', '\t', '\r\n', ','],
    wrap: (content) => `${chunked}0\r\n${content}\r\n`,
  },
  {
    ...requests,
    name: 'the line of a chunk of a request',
    units: ['0', ';a', ';a=b', ';a="b"', ';a="\\"', ';', '"'],
    atoms: [';', 'a', '=', '"', '\\', '0', ' '],
    wrap: (content) => `${chunked}1${content}\r\na\r\n0\r\n\r\n`,
  },
  {
    ...requests,
    name: 'chunks of a request',
    units: ['1\r\na\r\n', '01;a\r\na\r\n', '000000001\r\na\r\n'],
    atoms: ['1\r\na\r\n', '2\r\nab\r\n', '00', '1;a="b"\r\na\r\n'],
    wrap: (content) => `${chunked}${content}0\r\n\r\n`,
  },
  {
    name: 'requests that wait while the gateway begins to stop',
    largestBytes: 64 * 1024,
    units: ['GET / HTTP/1.1\r\n\r\n', '\r\n', `${chunked}0\r\n\r\n`, 'GET / HTTP/1.1\r\na:\r\n\r\n'],
    atoms: ['GET / HTTP/1.1\r\n\r\n', '\r\n', `${chunked}1\r\na\r\n0\r\n\r\n`, 'a{n}:\r\n'],
    wrap: (content) => content,
    open: openText((text) => countWholeRequests(Buffer.from(text, 'latin1'), headLimits)),
    onlyWhole: true,
  },
  {
    name: 'the number of headers of a request',
    largestBytes: 64 * 1024,
    units: ['a ', 'cookie ', 'a cookie ', 'a{n} cookie ', ':a '],
    atoms: ['a ', 'cookie ', ':a ', 'Cookie '],
    // As many other headers precede these as there are of them.
    wrap: (content) => 'a '.repeat(content.length / 14) + content,
    open: openText((text) => countFields(text.split(' ').flatMap((name) => [name, '']))),
    onlyWhole: true,
  },
]
