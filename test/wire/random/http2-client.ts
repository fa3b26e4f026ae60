import {
  connect,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
} from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { tlsOptions } from './tls-options.ts'
import { deliver } from './deliver.ts'
import { targetOf } from './message-bytes.ts'
import { newOutcome, noteFault, takeBody, type Outcome } from './outcome.ts'
import { patternBytes, uploadId } from './pattern.ts'
import type { Conversation, Exchange } from './plan.ts'
import { slowDown } from './reading.ts'

/** Plays an HTTP/2 client with one connection and concurrent requests. Resolves when the connection is closed. */
export async function converseHttp2(
  port: number,
  conversation: Conversation,
  silenceMs: number,
): Promise<readonly Outcome[]> {
  const { exchanges, window } = conversation
  const outcomes = exchanges.map(newOutcome)
  const tcp = connectTcp({ host: '127.0.0.1', port, localAddress: conversation.address, noDelay: true })
  const socket = connectTls({ ...tlsOptions, socket: tcp, ALPNProtocols: ['h2'] })
  const session = connect(`https://localhost:${port}`, {
    createConnection: () => socket,
    settings: { initialWindowSize: conversation.streamWindow, enablePush: false },
  })
  tcp.on('error', () => undefined)
  session.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => session.once('close', () => resolve()))
  const silence = setTimeout(() => {
    for (const outcome of outcomes) if (!outcome.complete) outcome.ended ??= 'silent'
    session.destroy()
  }, silenceMs)
  // The session reads the socket directly, so the socket emits no events.
  const heard = (): void => void silence.refresh()

  const leave = (how: 'end' | 'reset'): void => {
    for (const outcome of outcomes) if (!outcome.complete) outcome.ended ??= 'left'
    if (how === 'end') socket.destroySoon()
    session.destroy()
  }
  let next = 0
  const work = async (): Promise<void> => {
    for (let at = next++; at < exchanges.length; at = next++) {
      const exchange = exchanges[at]
      const outcome = outcomes[at]
      if (!exchange || !outcome) return
      heard()
      if (!session.closed && !session.destroyed)
        await converse(session, conversation, exchange, outcome, { leave, heard })
      if (!outcome.complete) outcome.ended ??= 'closed'
    }
  }
  await Promise.all(Array.from({ length: window }, work))
  if (!session.destroyed) session.close()
  await closed
  clearTimeout(silence)
  return outcomes
}

/** Plays one exchange. Resolves when its stream is closed, no matter how it ends. */
function converse(
  session: ClientHttp2Session,
  conversation: Conversation,
  exchange: Exchange,
  outcome: Outcome,
  { leave, heard }: { readonly leave: (how: 'end' | 'reset') => void; readonly heard: () => void },
): Promise<void> {
  const { upload, cancel } = exchange
  const stream = session.request(headersOf(exchange), { endStream: !upload })
  const giveUp = (): void => {
    if (!cancel || stream.closed) return
    outcome.ended ??= 'left'
    if (cancel.how === 'stream') stream.close(constants.NGHTTP2_CANCEL)
    else leave(cancel.how)
  }
  const slow = slowDown(stream, conversation.reading, exchange.id)
  return new Promise((resolve) => {
    stream.on('headers', (headers) => {
      heard()
      outcome.interim.push(Number(headers[':status']))
    })
    stream.on('response', (headers) => {
      heard()
      outcome.status = headers[':status']
      outcome.headers = plainHeaders(headers)
      if (cancel?.where === 'response' && cancel.share * exchange.answer.bytes === 0) giveUp()
    })
    stream.on('data', (piece: Buffer) => {
      heard()
      takeBody(outcome, exchange, piece)
      slow(piece.length)
      if (cancel?.where === 'response' && outcome.bodyBytes >= cancel.share * exchange.answer.bytes) giveUp()
    })
    let ended = false
    stream.on('end', () => (ended = true))
    stream.on('error', () => undefined)
    // The other side is reading the upload.
    stream.on('drain', heard)
    stream.on('close', () => {
      outcome.resetCode = stream.rstCode
      const isWhole = ended && stream.rstCode === 0 && outcome.status !== undefined
      // When the client itself destroys the session, its streams end as if they were complete.
      outcome.complete = isWhole && outcome.ended === undefined
      if (!outcome.complete) outcome.ended ??= session.destroyed && stream.rstCode === 0 ? 'closed' : 'reset'
      const length = outcome.headers['content-length']
      if (
        outcome.complete &&
        outcome.bodyBytes > 0 &&
        length !== undefined &&
        Number(length) !== outcome.bodyBytes
      )
        noteFault(outcome, `a content-length of ${length} with ${outcome.bodyBytes} bytes`)
      resolve()
    })
    if (upload) void sendUpload(stream, exchange, outcome, giveUp)
    else if (cancel?.where === 'request') setImmediate(giveUp)
  })
}

async function sendUpload(
  stream: ClientHttp2Stream,
  { id, upload, cancel }: Exchange,
  outcome: Outcome,
  giveUp: () => void,
): Promise<void> {
  if (!upload) return
  const isCut = cancel?.where === 'request'
  const bytes = isCut ? Math.floor(cancel.share * upload.bytes) : upload.bytes
  await deliver(stream, patternBytes(uploadId(id), 0, bytes), upload.delivery, () => stream.closed)
  if (isCut) {
    giveUp()
    return
  }
  stream.end()
  outcome.sent = true
}

function headersOf(exchange: Exchange): Record<string, string> {
  const { id, method, upload } = exchange
  const headers: Record<string, string> = {
    ':method': method,
    ':path': targetOf(exchange),
    'x-id': String(id),
  }
  if (upload?.framing === 'length') headers['content-length'] = String(upload.bytes)
  if (upload?.expectsContinue) headers['expect'] = '100-continue'
  return headers
}

function plainHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]))
}
