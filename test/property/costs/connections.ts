import { JsonBody, MAX_BODY_BYTES } from '../../../proxy/admin/json-body.ts'
import { ProxyHeaderError, ProxyHeaderReader } from '../../../proxy/http/connection/proxy-header.ts'
import { findMember } from '../../../proxy/limits/costs/json-members.ts'
import { openText, type ByteReader, type CostRow } from '../../support/cost/row.ts'

function openProxyHeader(): ByteReader {
  const reader = new ProxyHeaderReader()
  return {
    take(piece) {
      Object.assign(this, { reader })
      Object.assign(this, { header: reader.read(piece)?.address })
    },
  }
}

const signature2 = '\r\n\r\n\0\r\nQUIT\n\x21\x11'
const maxVersion2Bytes = 16 * 1024

/** The length field states the length of the content, up to the maximum. */
function version2(content: string): string {
  const length = Math.min(content.length, maxVersion2Bytes - 16)
  return signature2 + String.fromCharCode(length >> 8, length & 0xff) + content
}

const json = ['{', '}', '[', ']', ',', ':', '"a"', '"\\u0061"', '1', '1e9', 'null', ' ', '"', '"é"', '"{n}"']

function openBody(): ByteReader {
  const body = new JsonBody()
  return {
    take(piece) {
      Object.assign(this, { body })
      if (body.take(piece)) return
      throw new RangeError('too long')
    },
  }
}

/** Searches a text if `JSON.parse` accepts it, as the gateway does. */
const openMembers = openText((text) => {
  try {
    JSON.parse(text)
  } catch {
    return undefined
  }
  return findMember(text, ['usage', 'total_tokens'])
})

export const rows: readonly CostRow[] = [
  {
    name: 'a PROXY header of version 1',
    largestBytes: 107,
    units: ['a', ' ', '1', ' 1'],
    atoms: ['1', '.', ' ', ':', '\r', '\n'],
    wrap: (content) => `PROXY TCP4 ${content}\r\n`,
    open: openProxyHeader,
    refusals: [ProxyHeaderError],
    // The memory of a header that waits for its end.
    keptBytes: 1024,
  },
  {
    name: 'a PROXY header of version 2',
    largestBytes: maxVersion2Bytes,
    units: ['\0', '\xff', '\x01\0\x01a'],
    atoms: ['\0', '\x01', '\xff', 'a'],
    wrap: version2,
    open: openProxyHeader,
    refusals: [ProxyHeaderError],
  },
  {
    name: 'a body of the admin API',
    largestBytes: MAX_BODY_BYTES,
    units: ['a', '[', ' ', '"a",'],
    atoms: json,
    wrap: (content) => `{"a":[${content}`,
    open: openBody,
    refusals: [RangeError],
  },
  {
    name: 'the JSON of a request or a response, of which a member is wanted',
    largestBytes: 64 * 1024,
    units: ['"usage",', '{},', '[],', '{"usage":{}},', '"\\u0075sage",', '1,', '"" ,', ' '],
    atoms: json,
    wrap: (content) => `{"a":[${content}0],"usage":{"total_tokens":1}}`,
    open: openMembers,
    onlyWhole: true,
  },
  {
    name: 'the members of a JSON object, of which one is wanted',
    largestBytes: 64 * 1024,
    units: [
      '"a":1,',
      '"a{n}":1,',
      '"usage":{},',
      '"\\u0061":1,',
      '"é{n}":1,',
      '"{n}":{},',
      '"a"  :  {"total_tokens":1},',
    ],
    atoms: ['"a":', '1,', '"{n}":', '{},', '[],', '"usage":', '"\\u0061":', '   '],
    wrap: (content) => `{${content}"usage":{"total_tokens":1}}`,
    open: openMembers,
    onlyWhole: true,
  },
]
