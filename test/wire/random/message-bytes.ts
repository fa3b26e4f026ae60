import { seededRandom } from '../../support/random/seeded-random.ts'
import { patternBytes, uploadId } from './pattern.ts'
import { hasNoContent, isForwarded, type Exchange } from './plan.ts'

/** The bytes of a response, and how much of its body a prefix contains. */
export type AnswerBytes = {
  readonly wire: Buffer
  /** The offset at which the final response's head ends. */
  readonly headEnd: number
  /** How many bytes of the body are among the first `wireBytes` bytes. */
  bodyWithin(wireBytes: number): number
}

const made = new WeakMap<Exchange, AnswerBytes>()

/** Returns the whole response of the backend. */
export function answerBytes(exchange: Exchange): AnswerBytes {
  let bytes = made.get(exchange)
  if (!bytes) made.set(exchange, (bytes = makeAnswer(exchange)))
  return bytes
}

function makeAnswer(exchange: Exchange): AnswerBytes {
  const { id, answer } = exchange
  const { framing, bytes } = answer
  let head = ''
  for (const status of answer.interim)
    head += `HTTP/1.1 ${status} Wait\r\n${status === 103 ? `link: </${id}>; rel=preload\r\n` : ''}\r\n`
  head += `HTTP/1.1 ${answer.status} Planned\r\nx-id: ${id}\r\nkeep-alive: timeout=60\r\n`
  if (answer.then === 'close' || framing === 'until-close') head += 'connection: close\r\n'
  const isBodiless = answer.status === 204 || answer.status === 304
  if (framing === 'length' && !isBodiless) head += `content-length: ${bytes}\r\n`
  if (framing === 'chunked' && !isBodiless) head += 'transfer-encoding: chunked\r\n'
  head += '\r\n'
  const headEnd = head.length
  const start = Buffer.from(head, 'latin1')
  if (hasNoContent(exchange)) return { wire: start, headEnd, bodyWithin: () => 0 }
  if (framing !== 'chunked') {
    const wire = Buffer.concat([start, patternBytes(id, 0, bytes)])
    return { wire, headEnd, bodyWithin: (wireBytes) => Math.max(0, Math.min(bytes, wireBytes - headEnd)) }
  }
  const { pieces, chunks } = chunked(id, bytes, answer.chunkMost, answer.delivery.seed)
  pieces.push(Buffer.from(answer.trailers ? '0\r\nx-sum: 1\r\n\r\n' : '0\r\n\r\n'))
  return {
    wire: Buffer.concat([start, ...pieces]),
    headEnd,
    bodyWithin(wireBytes) {
      let body = 0
      for (const { at, size } of chunks) body += Math.max(0, Math.min(size, wireBytes - headEnd - at))
      return body
    },
  }
}

/** How many bytes of a response the backend sends: fewer than all if it breaks off. */
export function brokenAt({ answer: { broken } }: Exchange, { wire }: AnswerBytes): number {
  return broken ? Math.floor(broken.share * wire.length) : wire.length
}

/** An HTTP/1 request in the two parts between which the client may have to wait for the gateway. */
export function requestBytes(exchange: Exchange): { head: Buffer; body: Buffer } {
  const { id, kind, method, version, upload } = exchange
  if (kind === 'noise') return { head: Buffer.from('\x01noise\r\n\r\n'), body: Buffer.alloc(0) }
  let head = `${method} ${targetOf(exchange)} HTTP/${version}\r\nHost: a.example\r\nX-Id: ${id}\r\n`
  if (exchange.asksToClose) head += 'Connection: close\r\n'
  if (kind === 'tunnel' || kind === 'refused-upgrade')
    head +=
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
      'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n'
  if (upload?.expectsContinue) head += 'Expect: 100-continue\r\n'
  if (upload)
    head +=
      upload.framing === 'length' ? `Content-Length: ${upload.bytes}\r\n` : 'Transfer-Encoding: chunked\r\n'
  return { head: Buffer.from(`${head}\r\n`), body: uploadBytes(exchange) }
}

export function targetOf(exchange: Exchange): string {
  if (exchange.kind === 'options') return '*'
  if (exchange.kind === 'bad-target') return '/%zz'
  if (exchange.kind === 'limited') return `/limited/${exchange.id}`
  return isForwarded(exchange) ? `/r/${exchange.id}` : '/here'
}

function uploadBytes({ id, upload }: Exchange): Buffer {
  if (!upload) return Buffer.alloc(0)
  if (upload.framing === 'length') return patternBytes(uploadId(id), 0, upload.bytes)
  const { pieces } = chunked(uploadId(id), upload.bytes, upload.chunkMost, upload.delivery.seed)
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')])
}

const maxChunks = 1_000

type Chunk = { readonly at: number; readonly size: number }

/** A body in chunks without the last chunk, and the position of each chunk's content. */
function chunked(
  id: number,
  bytes: number,
  most: number,
  seed: number,
): { pieces: Buffer[]; chunks: Chunk[] } {
  const random = seededRandom(seed + 1)
  const pieces: Buffer[] = []
  const chunks: Chunk[] = []
  const end = Buffer.from('\r\n')
  const least = Math.ceil(bytes / maxChunks)
  let wireBytes = 0
  for (let at = 0; at < bytes;) {
    const size = Math.min(bytes - at, Math.max(least, 1 + Math.floor(random() * most)))
    const line = Buffer.from(`${size.toString(16)}${random() < 0.05 ? ';extension=1' : ''}\r\n`)
    pieces.push(line, patternBytes(id, at, size), end)
    chunks.push({ at: wireBytes + line.length, size })
    wireBytes += line.length + size + end.length
    at += size
  }
  return { pieces, chunks }
}
