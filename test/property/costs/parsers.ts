import { RequestParser } from '../../../proxy/http1/parser/request-parser.ts'
import { RequestSyntaxError } from '../../../proxy/http1/parser/syntax-error.ts'
import type { ByteReader, CostRow } from '../../support/cost/row.ts'

/** Of `MAX_HEADER_SIZE` and `MAX_HEADER_COUNT`, unless they are set. */
const headLimits = { maxBytes: 16 * 1024, maxFields: 100 }

function openRequests(): ByteReader {
  const kept: unknown[] = []
  const parser = new RequestParser(
    {
      onHead: (head) => void kept.push(head),
      onBody: () => undefined,
      onBodyEnd: (trailers) => void kept.push(trailers),
    },
    headLimits,
  )
  return {
    take(piece) {
      for (let at = 0; at < piece.length;) at = parser.execute(piece, at)
      Object.assign(this, { parser, kept })
    },
  }
}

const requests = { largestBytes: headLimits.maxBytes, open: openRequests, refusals: [RequestSyntaxError] }

export const rows: readonly CostRow[] = [
  {
    ...requests,
    name: 'lines of the head of a request',
    units: ['a:\r\n', 'a{n}:\r\n', 'cookie:a\r\n', 'connection:a\r\n', 'transfer-encoding:,\r\n'],
    atoms: ['a', '{n}', ':', ' ', '\t', '\r\n', ',', 'cookie', 'connection', 'content-length:1', ';', '='],
    wrap: (content) => `GET / HTTP/1.1\r\nHost: a\r\n${content}\r\n`,
  },
  {
    ...requests,
    name: 'lines of the trailers of a request',
    units: ['a:\r\n', 'a{n}:\r\n'],
    atoms: ['a', '{n}', ':', ' ', '\t', '\r\n', ','],
    wrap: (content) => `POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n${content}\r\n`,
  },
]
