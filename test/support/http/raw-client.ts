import { connect } from 'node:net'

export type RawResponse = {
  readonly status: number
  /** Status line and field lines. */
  readonly head: string
  readonly body: string
}

/** What a client saw on one connection. Bytes are Latin-1 text. */
export type Conversation = {
  /** The statuses of 1xx responses, except 101. */
  readonly interim: number[]
  readonly responses: RawResponse[]
  /** Bytes that are not a complete response. */
  readonly rest: string
  /** How the gateway left the connection. */
  readonly ended: 'open' | 'closed' | 'reset'
}

export type ConverseOptions = {
  /** The client's address, a loopback address. */
  readonly from: string
  /** Final responses to wait for before sending `then`, or before hanging up if there is no `then`. */
  readonly responses: number
  /** Sent after those responses; the conversation then lasts until the gateway closes the connection. */
  readonly then?: string | undefined
  /** Half-closes the connection after the bytes. */
  readonly halfClose?: boolean | undefined
  /** Hangs up when this has resolved, no matter which responses have arrived. */
  readonly until?: Promise<unknown> | undefined
  /** The first response has no body, no matter what length it declares. */
  readonly toHead?: boolean | undefined
}

/** With thirty conversations at a time on a busy machine, responses may take seconds. */
const maxSilenceMs = 30_000

/**
 * Sends pieces of bytes over a connection of its own, each in a packet of its own as far as possible, and reads the response bytes.
 * Rejects if nothing arrives for too long.
 */
export function converse(
  port: number,
  pieces: readonly string[],
  options: ConverseOptions,
): Promise<Conversation> {
  return new Promise((resolve, reject) => {
    let received = ''
    let ended: Conversation['ended'] = 'open'
    let followed = false
    const socket = connect({ host: '127.0.0.1', port, localAddress: options.from, noDelay: true })
    const read = (): Conversation => readConversation(received, ended, options.toHead ?? false)
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`no end, and nothing more; received ${JSON.stringify(received)}`))
    }, maxSilenceMs)

    const look = (): void => {
      if (followed || (options.responses === 0 && options.then === undefined)) return
      if (read().responses.length < options.responses) return
      followed = true
      if (options.then === undefined) socket.end()
      else socket.write(options.then, 'latin1')
    }
    const send = async (): Promise<void> => {
      for (const [index, piece] of pieces.entries()) {
        if (!socket.writable) return
        await new Promise<void>((written) => socket.write(piece, 'latin1', () => written()))
        // Small writes complete at once. Without a pause, responses would be read only after the last piece, or never if the connection is
        // reset before.
        if (index % 64 !== 63) continue
        await new Promise((resolve) => setImmediate(resolve))
        // Thousands of pieces take a while on a busy machine, so silence counts from the last piece.
        timer.refresh()
      }
      if (options.halfClose) socket.end()
      else look()
      if (!options.until) return
      await options.until
      socket.resetAndDestroy()
    }

    socket.on('connect', () => void send())
    socket.on('data', (chunk) => {
      timer.refresh()
      received += chunk.toString('latin1')
      look()
    })
    socket.on('end', () => (ended = 'closed'))
    socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      // The gateway has closed already, but its response has not been read yet.
      if (code !== 'EPIPE') ended = 'reset'
    })
    socket.on('close', () => {
      clearTimeout(timer)
      resolve(read())
    })
  })
}

/** Takes the complete responses from the received bytes. */
export function readConversation(
  received: string,
  ended: Conversation['ended'],
  toHead: boolean,
): Conversation {
  const conversation: Conversation = { interim: [], responses: [], rest: received, ended }
  for (;;) {
    const { rest } = conversation
    const headEnd = rest.indexOf('\r\n\r\n')
    const [, digits] = /^HTTP\/1\.1 (\d{3}) /.exec(rest) ?? []
    if (headEnd === -1 || digits === undefined) return conversation
    const status = Number(digits)
    const head = rest.slice(0, headEnd)
    const afterHead = rest.slice(headEnd + 4)
    const take = (body: string, bytes: number): void => {
      conversation.responses.push({ status, head, body })
      Object.assign(conversation, { rest: afterHead.slice(bytes) })
    }
    if (status < 200 && status !== 101) {
      conversation.interim.push(status)
      Object.assign(conversation, { rest: afterHead })
      continue
    }
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
    if ((toHead && conversation.responses.length === 0) || status === 101 || status === 204 || status === 304)
      take('', 0)
    else if (/\r\ntransfer-encoding: chunked/i.test(head)) {
      const chunks = readChunks(afterHead)
      if (!chunks) return conversation
      take(chunks.body, chunks.bytes)
    } else if (length !== undefined) {
      if (afterHead.length < Number(length)) return conversation
      take(afterHead.slice(0, Number(length)), Number(length))
    } else if (ended === 'closed') take(afterHead, afterHead.length)
    else return conversation
  }
}

function readChunks(text: string): { body: string; bytes: number } | undefined {
  let body = ''
  let at = 0
  for (;;) {
    const [line, hex] = /^([0-9a-f]+)\r\n/i.exec(text.slice(at)) ?? []
    if (line === undefined || hex === undefined) return undefined
    const size = Number.parseInt(hex, 16)
    const start = at + line.length
    at = start + size + 2
    if (at > text.length) return undefined
    body += text.slice(start, start + size)
    if (size === 0) return { body, bytes: at }
  }
}

/** The ways in which bytes arrive, which must all give the same result. */
export const waysOfSending = {
  whole: (bytes) => [bytes],
  'line by line': (bytes) => bytes.match(/[^\n]*\n|[^\n]+$/g) ?? [],
  'byte by byte': cutToBytes,
  'in random pieces': (bytes, random) => cutAtRandom(bytes, random),
} satisfies Record<string, (bytes: string, random: () => number) => string[]>

export type WayOfSending = keyof typeof waysOfSending

/** Each single byte costs both sides a system call and a turn of the event loop: half a million take ten seconds of CPU. */
const SINGLE_BYTES_AT_EACH_END = 512
const MAX_SINGLE_BYTES = 4096
/** 31 shares no factor with the size of any buffer, so that pieces end at every position of a buffer. */
const MIDDLE_PIECE = /[^]{1,31}/g

/**
 * Cuts a text into single bytes. Unless the long tests run, pieces in the middle of a long text have 31 bytes: the middle is one value, or
 * equal lines and chunks, while the request line, the names and the ends of head and body are still sent in single bytes.
 */
function cutToBytes(bytes: string): string[] {
  const isLong = bytes.length > MAX_SINGLE_BYTES && process.env['PROPERTY_RUNS'] !== 'all'
  if (!isLong) return Array.from(bytes)
  const middle = bytes.slice(SINGLE_BYTES_AT_EACH_END, -SINGLE_BYTES_AT_EACH_END)
  return [
    ...Array.from(bytes.slice(0, SINGLE_BYTES_AT_EACH_END)),
    ...(middle.match(MIDDLE_PIECE) ?? []),
    ...Array.from(bytes.slice(-SINGLE_BYTES_AT_EACH_END)),
  ]
}

function cutAtRandom(bytes: string, random: () => number): string[] {
  const pieces: string[] = []
  for (let at = 0; at < bytes.length;) {
    const size = 1 + Math.floor(random() * random() * bytes.length)
    pieces.push(bytes.slice(at, at + size))
    at += size
  }
  return pieces
}

let clients = 0

/** A client address not used before in this process, so that its requests can be recognized at a backend. */
export function freshAddress(): string {
  clients++
  return `127.${1 + (clients >> 16)}.${(clients >> 8) & 255}.${clients & 255}`
}

/**
 * Sends pieces of bytes, and hangs up when the gateway has closed, or when nothing has arrived for a moment. For bytes that the gateway may
 * or may not answer.
 */
export function sendAndLeave(
  port: number,
  pieces: readonly string[],
  from: string,
  quietMs = 60,
): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, localAddress: from, noDelay: true })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve())
    socket.on('connect', () => {
      void (async () => {
        for (const piece of pieces) {
          if (!socket.writable) return
          await new Promise<void>((written) => socket.write(piece, 'latin1', () => written()))
        }
        socket.setTimeout(quietMs, () => socket.resetAndDestroy())
      })()
    })
    // The socket must be read, or its end would go unnoticed.
    socket.resume()
  })
}
