import {
  connect,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from 'node:http2'
import { readFileSync } from 'node:fs'
import { authorityFile } from '../network/certificates.ts'
import { atEndOfFile } from '../run/at-end.ts'

export type Http2Reply = {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  /** Name, value, name, value… as they came. */
  readonly rawHeaders: readonly string[]
  readonly body: string
  /** The error code with which the stream was reset; 0 if it was not reset, or with NO_ERROR. */
  readonly resetCode: number
}

const sessions = new Set<ClientHttp2Session>()

atEndOfFile(() => {
  for (const session of sessions) session.destroy()
  sessions.clear()
})

/**
 * An HTTP/2 connection to a gateway on this machine. Its errors reach its requests.
 *
 * @param options.cleartext uses cleartext HTTP/2 with prior knowledge instead of TLS
 */
export function connectHttp2(
  port: number,
  {
    cleartext = false,
    ...options
  }: SecureClientSessionOptions & { readonly localAddress?: string; readonly cleartext?: boolean } = {},
): ClientHttp2Session {
  const session = cleartext
    ? connect(`http://127.0.0.1:${port}`, options)
    : connect(`https://localhost:${port}`, { ca: readFileSync(authorityFile), ...options })
  session.on('error', () => undefined)
  sessions.add(session)
  return session
}

/**
 * Sends one request. Resolves when its stream is closed, no matter how it ends.
 *
 * @param body the whole body, or a function that writes it; if absent, the request has no body
 */
export function sendHttp2(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string | Buffer | ((stream: ClientHttp2Stream) => void),
): Promise<Http2Reply> {
  return new Promise((resolve) => {
    const stream = session.request(headers, { endStream: body === undefined })
    let received: IncomingHttpHeaders = {}
    let rawHeaders: readonly string[] = []
    let text = ''
    stream.on('response', (fields, _flags, raw: string[]) => {
      received = fields
      rawHeaders = raw
    })
    stream.setEncoding('latin1')
    stream.on('data', (chunk: string) => (text += chunk))
    stream.on('error', () => undefined)
    stream.on('close', () =>
      resolve({
        status: received[':status'] === undefined ? undefined : Number(received[':status']),
        headers: received,
        rawHeaders,
        body: text,
        resetCode: stream.rstCode,
      }),
    )
    if (typeof body === 'function') body(stream)
    else if (body !== undefined) stream.end(body)
  })
}
