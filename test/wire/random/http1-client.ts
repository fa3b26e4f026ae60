import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { tlsOptions } from './tls-options.ts'
import { deliver } from './deliver.ts'
import { requestBytes } from './message-bytes.ts'
import { noteFault, type Outcome } from './outcome.ts'
import type { Conversation, Exchange } from './plan.ts'
import { slowDown } from './reading.ts'
import { ResponseReader } from './response-reader.ts'
import { tunnelBytes } from './tunnel-bytes.ts'

/** Requests are sent together until they have this many bytes. */
const maxTogether = 64 * 1024

/** Plays an HTTP/1 client with one connection. Resolves when the connection is closed; `silenceMs` without any bytes closes it. */
export function converseHttp1(
  port: number,
  conversation: Conversation,
  silenceMs: number,
): Promise<readonly Outcome[]> {
  return new Http1Client(port, conversation, silenceMs).run()
}

class Http1Client {
  readonly #conversation: Conversation
  readonly #exchanges: readonly Exchange[]
  readonly #tcp: Socket
  readonly #socket: Socket
  readonly #reader: ResponseReader
  readonly #silence: NodeJS.Timeout
  readonly #waiting = new Set<() => void>()
  readonly #closed: Promise<unknown>
  #tunnel: Buffer = Buffer.alloc(0)
  #ended: Outcome['ended']
  #isOver = false
  #isConnected = false

  constructor(port: number, conversation: Conversation, silenceMs: number) {
    this.#conversation = conversation
    this.#exchanges = conversation.exchanges
    this.#reader = new ResponseReader(this.#exchanges, (piece) => this.#takeEcho(piece))
    const { protocol, address, reading, delivery } = conversation
    this.#tcp = connect({
      host: '127.0.0.1',
      port,
      localAddress: address,
      allowHalfOpen: true,
      noDelay: true,
    })
    this.#socket =
      protocol === 'http'
        ? this.#tcp
        : connectTls({ ...tlsOptions, socket: this.#tcp, ALPNProtocols: ['http/1.1'] })
    const socket = this.#socket
    this.#silence = setTimeout(() => this.#leave('silent'), silenceMs)
    const slow = slowDown(socket, reading, delivery.seed)
    socket.on('data', (piece: Buffer) => {
      this.#silence.refresh()
      slow(piece.length)
      this.#reader.push(piece)
      this.#cancelInResponse()
      this.#wake()
    })
    socket.on('end', () => {
      this.#reader.end()
      this.#ended ??= 'closed'
      this.#finish()
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // EPIPE means that a write failed because the gateway has closed; earlier bytes are still read.
      if (error.code !== 'EPIPE') this.#ended ??= 'reset'
    })
    this.#tcp.on('error', () => undefined)
    this.#closed = new Promise<void>((resolve) =>
      socket.on('close', () => {
        this.#ended ??= 'closed'
        clearTimeout(this.#silence)
        this.#isOver = true
        this.#wake()
        resolve()
      }),
    )
  }

  async run(): Promise<readonly Outcome[]> {
    // Waits for the connection, as a socket that is reset while it is connecting never closes.
    this.#socket.once(this.#socket === this.#tcp ? 'connect' : 'secureConnect', () => {
      this.#isConnected = true
      this.#wake()
    })
    await this.#until(() => this.#isConnected)
    await this.#send()
    await this.#until(() => this.#reader.completed === this.#exchanges.length)
    // If a response has announced the end of the connection, the client waits for that end.
    if (!this.#reader.mayClose) this.#socket.end()
    await this.#closed
    for (const outcome of this.#reader.outcomes) if (!outcome.complete) outcome.ended = this.#ended
    const last = this.#reader.outcomes.at(-1)
    if (this.#ended === 'silent' && last?.complete)
      noteFault(last, 'the gateway does not close the connection')
    return this.#reader.outcomes
  }

  get #mayNotSend(): boolean {
    return this.#isOver || this.#reader.isFinished
  }

  async #send(): Promise<void> {
    for (let next = 0; next < this.#exchanges.length;) {
      const first = next
      await this.#until(() => this.#hasRoomFor(first))
      if (this.#mayNotSend) return
      const parts: Buffer[] = []
      let bytes = 0
      let last: Exchange | undefined
      do {
        last = this.#exchanges[next++]
        if (!last) break
        const { head, body } = requestBytes(last)
        const whole = last.upload?.expectsContinue ? head : Buffer.concat([head, body])
        const part =
          last.cancel?.where === 'request' ? whole.subarray(0, last.cancel.share * whole.length) : whole
        parts.push(part)
        bytes += part.length
      } while (bytes < maxTogether && !last.upload?.expectsContinue && !last.cancel && this.#hasRoomFor(next))
      await this.#deliver(Buffer.concat(parts), last?.upload?.delivery ?? this.#conversation.delivery)
      if (last) await this.#sendRest(last, next - 1)
      if (!this.#isOver) for (const outcome of this.#reader.outcomes.slice(first, next)) outcome.sent = true
    }
    if (this.#conversation.halfCloses) this.#socket.end()
  }

  /** Sends what an exchange still needs once its head, and usually all of it, has been sent. */
  async #sendRest(exchange: Exchange, index: number): Promise<void> {
    const { cancel, upload, tunnel } = exchange
    const outcome = this.#reader.outcomes[index]
    if (cancel?.where === 'request' || (cancel && cancel.share === 0)) {
      this.#leave('left', cancel.how)
      return
    }
    if (upload?.expectsContinue) {
      await this.#until(() => outcome?.interim.includes(100) === true || this.#reader.completed > index)
      if (!outcome?.interim.includes(100) || this.#mayNotSend) return
      await this.#deliver(requestBytes(exchange).body, upload.delivery)
    } else if (tunnel) {
      this.#tunnel = tunnelBytes(exchange)
      await this.#until(() => this.#reader.isInTunnel || this.#reader.completed > index)
      if (this.#reader.isInTunnel) await this.#useTunnel(exchange)
    }
  }

  async #useTunnel({ tunnel }: Exchange): Promise<void> {
    const outcome = this.#reader.current
    if (!tunnel || !outcome) return
    await this.#deliver(this.#tunnel, tunnel.delivery)
    const part = tunnel.end === 'client-reset' ? this.#tunnel.length / 2 : this.#tunnel.length
    await this.#until(() => outcome.echoed >= part)
    if (tunnel.end === 'client-reset') this.#leave('left', 'reset')
    else if (tunnel.end === 'client') this.#socket.end()
    await this.#closed
  }

  #takeEcho(piece: Buffer): void {
    const outcome = this.#reader.current
    if (!outcome) return
    const expected = this.#tunnel.subarray(outcome.echoed, outcome.echoed + piece.length)
    if (!expected.equals(piece))
      noteFault(outcome, `the tunnel returned other bytes than were sent, at ${outcome.echoed}`)
    outcome.echoed += piece.length
  }

  /** Whether a request may be sent: within the window of concurrent requests, or, for a handshake, when nothing else is in flight. */
  #hasRoomFor(index: number): boolean {
    const exchange = this.#exchanges[index]
    if (!exchange) return false
    const { completed } = this.#reader
    const isHandshake = exchange.kind === 'tunnel' || exchange.kind === 'refused-upgrade'
    return isHandshake ? completed === index : index - completed < this.#conversation.window
  }

  #deliver(bytes: Buffer, delivery: Conversation['delivery']): Promise<void> {
    return deliver(this.#socket, bytes, delivery, () => {
      this.#silence.refresh()
      return this.#mayNotSend
    })
  }

  #cancelInResponse(): void {
    const exchange = this.#exchanges[this.#reader.completed]
    const outcome = this.#reader.current
    if (!exchange?.cancel || exchange.cancel.where === 'request' || outcome?.status === undefined) return
    if (outcome.bodyBytes >= exchange.cancel.share * exchange.answer.bytes)
      this.#leave('left', exchange.cancel.how)
  }

  #leave(ended: 'left' | 'silent', how = 'reset'): void {
    if (this.#isOver) {
      // The connection is still not closed, although one side has ended it.
      if (ended === 'silent') this.#socket.destroy()
      return
    }
    this.#ended ??= ended
    this.#isOver = true
    if (how === 'end') this.#socket.destroySoon()
    // Node crashes if the socket below TLS is reset. Its usual close is a reset too if there are unread bytes.
    else if (this.#socket === this.#tcp) this.#tcp.resetAndDestroy()
    else this.#socket.destroy()
    this.#wake()
  }

  #finish(): void {
    this.#isOver = true
    this.#socket.destroySoon()
    this.#wake()
  }

  #wake(): void {
    for (const look of [...this.#waiting]) look()
  }

  /** Resolves when the condition holds, or when nothing more can arrive. */
  #until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!this.#isOver && !this.#reader.isFinished && !condition()) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      look()
    })
  }
}
