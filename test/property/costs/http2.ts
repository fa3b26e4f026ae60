import { ConnectionError, flags, frameTypes } from '../../../proxy/http/http2/frames.ts'
import { http2Preface } from '../../../proxy/http/message/http2-preface.ts'
import { Glitches } from '../../../proxy/http/http2/glitches.ts'
import { HpackDecoder } from '../../../proxy/http/http2/hpack/decoder.ts'
import { Http2Input, type Http2InputOwner } from '../../../proxy/http/http2/input.ts'
import { readRequestFields } from '../../../proxy/http/http2/request-fields.ts'
import { headersOf } from '../../../proxy/http/message/headers.ts'
import type { ByteReader, CostRow } from '../../support/cost/row.ts'

const maxHeaderBytes = 16 * 1024
/** The maximum size of a header block before it is decoded. */
const blockBytes = 4 * maxHeaderBytes

function frame(type: number, flagBits: number, stream: number, payload: string): string {
  const { length } = payload
  return (
    String.fromCharCode(length >> 16, (length >> 8) & 0xff, length & 0xff, type, flagBits, 0, 0, 0, stream) +
    payload
  )
}

const begin = http2Preface.toString('latin1') + frame(frameTypes.settings, 0, 0, '')

/** A connection whose streams end as soon as they begin. */
function openConnection(): ByteReader {
  const kept: unknown[] = []
  const nothing = (): undefined => undefined
  const never = (): boolean => false
  const glitches = new Glitches(() => 0)
  let lastStream = 0
  const owner: Http2InputOwner = {
    output: {
      send: nothing,
      takeHasResponded: never,
      widen: nothing,
      widenStream: never,
      resizeTable: nothing,
      setInitialWindow: nothing,
    },
    isClosed: false,
    streams: new Map(),
    answered: { end: never, get: nothing, delete: nothing },
    get lastStream() {
      return lastStream
    },
    open(id, list, _endsStream, isTooLarge) {
      lastStream = id
      const fields = isTooLarge ? undefined : readRequestFields(list)
      if (fields) kept.push(fields, headersOf(fields.headers))
    },
    glitch(weight) {
      if (!glitches.add(weight)) throw new ConnectionError(11, 'too many frames without effect (flood)')
    },
    requestGlitch: (weight) => owner.glitch(weight),
    failStream: () => owner.glitch(10),
    cancelStream: () => owner.glitch(1),
    closeIfDone: nothing,
    closeWhenIdle: nothing,
  }
  const incoming = new Http2Input(owner, maxHeaderBytes, () => 0)
  return {
    take(piece) {
      Object.assign(this, { incoming, kept })
      incoming.read(piece)
    },
  }
}

function openBlock(): ByteReader {
  const decoder = new HpackDecoder(maxHeaderBytes)
  return {
    take(piece) {
      Object.assign(this, { decoder })
      const list = decoder.decode(piece)
      const fields = decoder.isTooLarge ? undefined : readRequestFields(list)
      Object.assign(this, { fields, headers: fields && headersOf(fields.headers) })
    },
  }
}

const connections = { largestBytes: maxHeaderBytes, open: openConnection, refusals: [ConnectionError] }
const blocks = { largestBytes: blockBytes, open: openBlock, refusals: [ConnectionError], onlyWhole: true }
const request = '\x82\x84\x86'
const hpackAtoms = [
  '\x20',
  '\x3f\xe1\x1f',
  '\x82',
  '\xbe',
  '\xbf',
  '\x40\x01a\0',
  '\0\0\0',
  '\0\x01a\x01b',
  '\x10\x01a\0',
  '\0\x81\x1f\x80',
]

export const rows: readonly CostRow[] = [
  {
    ...blocks,
    name: 'a block of headers',
    units: ['\x40\x01a\0', '\0\x01a\0', '\0\0\0', '\x40\0\0', '\xbe', '\0\x81\x1f\x81\x1f', '\x60\x01b'],
    atoms: hpackAtoms,
    wrap: (content) => `${request}\x40\x01a\0${content}`,
  },
  {
    ...blocks,
    name: 'a block of headers that names a long one of the table',
    units: ['\xbe', '\x7e\0', '\x0f\x2f\0', '\xbe\x40\x01a\0'],
    atoms: hpackAtoms,
    // 3900 bytes: 127 + 3773.
    wrap: (content) => `${request}\x40\x01a\x7f\xbd\x1d${'v'.repeat(3900)}${content}`,
  },
  {
    ...blocks,
    name: 'changes of the size of the table',
    units: ['\x20', '\x3f\xe1\x1f', '\x20\x3f\xe1\x1f'],
    atoms: ['\x20', '\x3f\xe1\x1f', '\x30'],
    wrap: (content) => `${content}${request}`,
  },
  {
    ...blocks,
    name: 'a long text in the code of Huffman',
    units: ['\x1f', '\xff', '\0', '\x18\xc6\x31'],
    atoms: ['\x1f', '\xff', '\0', '\x55'],
    wrap(content) {
      const length = content.length - 127
      const sizes = [0xff, (length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, length >> 14]
      return content.length < 127 ? request : `${request}\0\x01a${String.fromCharCode(...sizes)}${content}`
    },
  },
  {
    ...connections,
    name: 'HTTP/2 frames',
    units: [
      frame(frameTypes.ping, 0, 0, '12345678'),
      frame(frameTypes.settings, 0, 0, ''),
      frame(frameTypes.settings, 0, 0, '\0\x04\0\0\0\x01'.repeat(32)),
      frame(frameTypes.windowUpdate, 0, 0, '\0\0\0\x01'),
      frame(frameTypes.priority, 0, 1, '12345'),
      frame(0xee, 0, 1, ''),
      frame(frameTypes.goaway, 0, 0, ''),
    ],
    atoms: [
      frame(frameTypes.ping, flags.ack, 0, '12345678'),
      frame(frameTypes.windowUpdate, 0, 0, '\0\0\0\x01'),
      frame(0xee, 0, 0, 'a'),
      frame(frameTypes.priority, 0, 3, '12345'),
    ],
    wrap: (content) => begin + content,
  },
  {
    ...connections,
    name: 'the parts of a block of headers',
    largestBytes: blockBytes,
    units: [
      frame(frameTypes.continuation, 0, 1, ''),
      frame(frameTypes.continuation, 0, 1, '\0'),
      frame(frameTypes.continuation, 0, 1, '\0\x01a\0'),
    ],
    atoms: [
      frame(frameTypes.continuation, 0, 1, '\x40\x01a\0'),
      frame(frameTypes.continuation, 0, 1, '\xbe'.repeat(16)),
      frame(frameTypes.continuation, 0, 1, ''),
    ],
    wrap: (content) =>
      begin +
      frame(frameTypes.headers, 0, 1, request) +
      content +
      frame(frameTypes.continuation, flags.endHeaders, 1, ''),
  },
  {
    ...connections,
    name: 'a frame that does not end',
    units: ['a', '\0'],
    atoms: [],
    wrap: (content) => `${begin}\0\x40\0\x04\0\0\0\0\0${content}`,
  },
]
