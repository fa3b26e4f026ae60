import {
  createSecureServer,
  createServer,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import { atEndOfFile } from '../run/at-end.ts'
import { readPair } from '../network/certificates.ts'

export type SeenStream = {
  readonly session: Http2Session
  readonly headers: IncomingHttpHeaders
  /** Name, value, name, value… as they came. */
  readonly rawHeaders: readonly string[]
}

export type Http2Backend = {
  readonly url: string
  readonly port: number
  /** Every request that arrived, in order. */
  readonly seen: SeenStream[]
  readonly sessions: ServerHttp2Session[]
  readonly sockets: Socket[]
  /** The codes with which the gateway reset streams. */
  readonly resets: number[]
}

type Answer = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void

const closers = new Set<() => void>()

atEndOfFile(() => {
  for (const close of closers) close()
  closers.clear()
})

/**
 * A backend that speaks only HTTP/2, with or without TLS.
 *
 * @param answer answers each request; unless given, with 200 and a body of the request's method, path and body
 */
export async function startHttp2Backend(
  answer: Answer = echo,
  {
    tls = false,
    settings = {},
  }: { readonly tls?: boolean; readonly settings?: ServerOptions['settings'] } = {},
): Promise<Http2Backend> {
  const seen: SeenStream[] = []
  const sessions: ServerHttp2Session[] = []
  const sockets: Socket[] = []
  const resets: number[] = []
  const server = tls ? createSecureServer({ ...readPair('first'), settings }) : createServer({ settings })
  server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => sockets.push(socket))
  server.on('session', (session: ServerHttp2Session) => {
    sessions.push(session)
    session.on('error', () => undefined)
  })
  server.on('stream', (stream: ServerHttp2Stream, headers, _flags, rawHeaders: string[]) => {
    if (stream.session) seen.push({ session: stream.session, headers, rawHeaders })
    stream.on('error', () => undefined)
    stream.on('close', () => stream.rstCode !== 0 && resets.push(stream.rstCode))
    answer(stream, headers)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  closers.add(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return {
    url: `${tls ? 'https://localhost' : 'h2c://127.0.0.1'}:${port}`,
    port,
    seen,
    sessions,
    sockets,
    resets,
  }
}

export function echo(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  let body = ''
  stream.setEncoding('latin1')
  stream.on('data', (text: string) => (body += text))
  stream.on('end', () => {
    if (stream.destroyed || stream.closed) return
    stream.respond({ ':status': 200, 'content-type': 'text/plain' })
    stream.end(`${headers[':method']} ${headers[':path']} ${body}`)
  })
}
