import { publicFields } from '../../../proxy/http/forward/public-fields.ts'
import { ResponseSyntaxError } from '../../../proxy/http/upstream/response/response-head.ts'
import { ResponseParser } from '../../../proxy/http/upstream/response/response-parser.ts'
import { openText, type ByteReader, type CostRow } from '../../support/cost/row.ts'

/** The maximum size of a head, and of trailers, independent of settings. */
const headBytes = 64 * 1024
/** The maximum length of a line of a chunked body. */
const lineBytes = 1024

function openResponse(): ByteReader {
  const kept: unknown[] = []
  const keep = (read: unknown): void => void kept.push(read)
  // There may be any number of interim responses, and each is passed on as it arrives.
  let lastInterim: unknown
  let passedOn = 0
  const parser = new ResponseParser()
  parser.expect('GET', {
    onInterimResponse: (head) => void (lastInterim = head),
    onHead: keep,
    onTrailers: keep,
    onBody: () => passedOn++,
    onEnd: () => undefined,
    onUpgrade: keep,
  })
  return {
    take(piece) {
      parser.execute(piece)
      Object.assign(this, { parser, kept, lastInterim, passedOn })
    },
  }
}

const responses = {
  largestBytes: headBytes,
  open: openResponse,
  refusals: [ResponseSyntaxError],
}
const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const fieldAtoms = [
  'a',
  '{n}',
  ':',
  ' ',
  '\t',
  '\r\n',
  ',',
  '\r',
  'connection',
  'set-cookie',
  'upgrade',
  'keep-alive',
]

const names = { publicHost: 'a', sentHost: 'b', prefix: '/v1' }
/** Response headers that a route with another host or path in the backend rewrites. */
const rewritten = ['location', 'content-location', 'link', 'refresh', 'set-cookie'].map((name): CostRow => ({
  name: `${name} of a response that is rewritten`,
  largestBytes: headBytes,
  onlyWhole: true,
  units: [
    '"',
    '\\"',
    '"\\',
    '<',
    '<>',
    '</a>,',
    '"<',
    "'",
    ' ',
    ';',
    '; path=/',
    '0;',
    'url=',
    '//',
    '/\\',
    '//b',
    'a:',
  ],
  atoms: ['"', '\\', '<', '>', ',', ';', ' ', "'", '=', 'url=', 'path=', '/', 'a', '//b', 'http:', '0', '\t'],
  wrap: (content) => `"${content}`,
  open: openText((text) => [text, text.slice(1)].map((value) => publicFields([name, value], names))),
}))

export const rows: readonly CostRow[] = [
  ...rewritten,
  {
    ...responses,
    name: 'lines of the head of a response',
    units: ['a:\r\n', 'a{n}:\r\n', 'connection:a\r\n', 'upgrade:a\r\n', 'connection:a{n},\r\n'],
    atoms: fieldAtoms,
    wrap: (content) => `HTTP/1.1 200 OK\r\n${content}\r\n`,
  },
  {
    ...responses,
    name: 'a line of the head of a response',
    units: ['a', ' ', ',', 'a,', '\t a', 'timeout=1,'],
    atoms: fieldAtoms.filter((atom) => atom !== '\r\n'),
    wrap: (content) => `HTTP/1.1 200 OK\r\nConnection: upgrade,${content}\r\n\r\n`,
  },
  {
    ...responses,
    name: 'the head of an interim response',
    units: ['a:\r\n', 'a{n}:\r\n', 'link: <a>\r\n'],
    atoms: fieldAtoms,
    wrap: (content) => `HTTP/1.1 103 Early Hints\r\n${content}\r\n\r\n`,
  },
  {
    ...responses,
    name: 'interim responses',
    units: ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\na: b\r\n\r\n\r\n'],
    atoms: ['HTTP/1.1 100 \r\n\r\n', 'HTTP/1.1 103 \r\n', 'a{n}: b\r\n', '\r\n'],
    wrap: (content) => content,
  },
  {
    ...responses,
    name: 'the trailers of a response',
    units: ['a:\r\n', 'a{n}:\r\n'],
    atoms: fieldAtoms,
    wrap: (content) => `${chunked}0\r\n${content}\r\n`,
  },
  {
    ...responses,
    name: 'chunks of a response',
    // A body has no maximum size, so the length is the same as for requests.
    largestBytes: 16 * 1024,
    units: ['1\r\na\r\n', '01;a\r\na\r\n', '000000001\r\na\r\n'],
    atoms: ['1\r\na\r\n', '2\r\nab\r\n', '00', '1;a="b"\r\na\r\n'],
    wrap: (content) => `${chunked}${content}0\r\n\r\n`,
  },
  {
    ...responses,
    name: 'a line of a chunk of a response',
    largestBytes: lineBytes,
    units: ['0', ';', ' ', ';a', '\t'],
    atoms: ['0', ';', 'a', '=', '"', ' '],
    wrap: (content) => `${chunked}1${content}\r\n`,
  },
]
