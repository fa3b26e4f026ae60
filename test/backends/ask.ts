import { connect, type Socket } from 'node:net'
import { isRisky, toBytes, type Spelling } from './spelling.ts'

/** The first final response to a spelling, as Latin-1 text. */
export type Response = {
  /** 0 if the connection ended, or was silent for too long, before the head. */
  readonly status: number
  readonly head: string
  readonly body: string
  /** Whether the response did not come, or did not end, in time. */
  readonly hung: boolean
}

const parallel = 24

/** Sends spellings over a few connections, one at a time on each, and resolves with their responses in the same order. */
export async function askAll(
  port: number,
  spellings: readonly Spelling[],
  silenceMs: number,
): Promise<readonly Response[]> {
  const responses: Response[] = []
  let next = 0
  const work = async (): Promise<void> => {
    let kept: Socket | undefined
    for (let at = next++; at < spellings.length; at = next++) {
      const spelling = spellings[at]
      if (!spelling) break
      const bytes = toBytes(spelling)
      const risky = isRisky(spelling)
      let exchange = await ask(risky ? undefined : kept, port, bytes, risky, silenceMs)
      // The server had closed the idle connection.
      if (exchange.reused && exchange.response.status === 0 && !exchange.response.hung)
        exchange = await ask(undefined, port, bytes, risky, silenceMs)
      responses[at] = exchange.response
      kept = exchange.socket ?? (risky ? kept : undefined)
    }
    kept?.destroy()
  }
  await Promise.all(Array.from({ length: parallel }, work))
  return responses
}

type Asked = {
  readonly response: Response
  /** The connection to reuse. */
  readonly socket: Socket | undefined
  readonly reused: boolean
}

/** @param headOnly ends the connection after the head, without waiting for more */
function ask(
  kept: Socket | undefined,
  port: number,
  bytes: string,
  headOnly: boolean,
  silenceMs: number,
): Promise<Asked> {
  return new Promise((resolve) => {
    const socket = kept ?? connect({ port, host: '127.0.0.1', noDelay: true })
    let received = ''
    const finish = (response: Response, keep: boolean): void => {
      clearTimeout(timer)
      socket.removeAllListeners().on('error', () => undefined)
      if (!keep) socket.destroy()
      resolve({ response, socket: keep ? socket : undefined, reused: kept !== undefined })
    }
    const timer = setTimeout(() => finish(read(received, true).response, false), silenceMs)
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      const { response, complete, keep } = read(received, false)
      if (complete || (headOnly && response.status > 0)) finish(response, keep && !headOnly)
    })
    socket.on('error', () => undefined)
    socket.on('close', () => finish(read(received, false).response, false))
    socket.write(bytes, 'latin1')
  })
}

type Reading = { readonly response: Response; readonly complete: boolean; readonly keep: boolean }

function read(received: string, hung: boolean): Reading {
  const [interim = ''] = /^(?:HTTP\/1\.1 1\d\d [^]*?\r\n\r\n)*/.exec(received) ?? []
  const text = received.slice(interim.length)
  const headEnd = text.indexOf('\r\n\r\n')
  const [, version, digits] = /^HTTP\/1\.([01]) (\d{3})/.exec(text) ?? []
  if (headEnd === -1 || digits === undefined)
    return { response: { status: 0, head: '', body: '', hung }, complete: false, keep: false }
  const status = Number(digits)
  const head = text.slice(0, headEnd)
  const body = text.slice(headEnd + 4)
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  const missing =
    status === 204 || status === 304
      ? -body.length
      : length === undefined
        ? Number.POSITIVE_INFINITY
        : Number(length) - body.length
  const isChunked = /\r\ntransfer-encoding: *chunked/i.test(head)
  const complete = isChunked ? body.endsWith('0\r\n\r\n') : missing <= 0
  const mayKeep = version === '1' && missing === 0 && !/\r\nconnection: *close/i.test(head)
  return { response: { status, head, body, hung }, complete, keep: complete && mayKeep }
}
