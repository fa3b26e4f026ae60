import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Attempt } from './backend.ts'
import { deliver } from './deliver.ts'
import { answerBytes, brokenAt } from './message-bytes.ts'
import type { Exchange } from './plan.ts'
import { RequestReader, type RequestHead } from './request-reader.ts'
import { tunnelBytes } from './tunnel-bytes.ts'

export type BackendHooks = {
  readonly number: number
  exchangeOf(id: number): Exchange | undefined
  note(id: number, attempt: Attempt): void
  fault(text: string): void
  /** Resolves when `count` requests are held. */
  hold(count: number): Promise<void>
}

/** A connection that is idle for this long may have been opened for a client that left, and have waited in the pool since. */
const idleMs = 50

/** The backend's side of a connection from the gateway: one request at a time, each answered as its exchange says. */
export class BackendConnection {
  readonly #socket: Socket
  readonly #hooks: BackendHooks
  readonly #reader: RequestReader
  readonly #acceptedMs = performance.now()
  #requests = 0
  #attempt: Attempt | undefined
  #exchange: Exchange | undefined
  #isAnswering = false
  #isEnded = false
  #echoed = 0
  #tunnelBytes = 0

  constructor(socket: Socket, hooks: BackendHooks) {
    this.#socket = socket
    this.#hooks = hooks
    this.#reader = new RequestReader({
      onHead: (head) => this.#begin(head),
      onContent: (bytes) => this.#attempt && (this.#attempt.uploadBytes += bytes),
      onEnd: () => this.#complete(),
      onFault: (text) => this.#fault(text),
    })
    socket.on('error', () => undefined)
    socket.on('data', (piece: Buffer) => {
      if (this.#exchange?.kind === 'tunnel' && this.#attempt?.whole) this.#echo(piece, this.#exchange)
      else this.#reader.push(piece)
    })
    socket.on('end', () => socket.end())
    socket.on('close', () => {
      this.#isEnded = true
      if (this.#attempt && this.#isAnswering) this.#attempt.cutOff = true
    })
  }

  #fault(text: string): void {
    this.#hooks.fault(`connection ${this.#hooks.number}, exchange ${this.#exchange?.id ?? 'none'}: ${text}`)
    this.#socket.destroy()
  }

  #begin({ method, target, headers }: RequestHead): number {
    const id = Number(/^\/(?:r|limited)\/(\d+)$/.exec(target)?.[1])
    const exchange = this.#hooks.exchangeOf(id)
    if (this.#isAnswering) this.#fault(`a request for ${target} before the answer to the one before`)
    if (!exchange) {
      this.#fault(`a request outside this batch: ${method} ${target}`)
      return 0
    }
    this.#exchange = exchange
    if (headers['x-id'] !== String(id))
      this.#fault(`${target} came with the fields of ${headers['x-id'] ?? 'none'}`)
    if (method !== exchange.method) this.#fault(`${exchange.method} came as ${method}`)
    if (headers['expect'] !== undefined) this.#fault('an Expect that has been answered was passed on')
    this.#attempt = {
      method,
      connection: this.#hooks.number,
      onReused: this.#requests++ > 0 || performance.now() - this.#acceptedMs > idleMs,
      tooLate: this.#socket.writableEnded,
      uploadBytes: 0,
      whole: false,
      cutOff: false,
    }
    this.#hooks.note(id, this.#attempt)
    if (exchange.answer.early) void this.#answer(exchange)
    return id
  }

  #complete(): void {
    if (!this.#attempt || !this.#exchange) return
    this.#attempt.whole = true
    if (!this.#exchange.answer.early) void this.#answer(this.#exchange)
  }

  async #answer(exchange: Exchange): Promise<void> {
    const { answer, kind } = exchange
    const socket = this.#socket
    if (!socket.writable) return
    this.#isAnswering = true
    if (answer.barrier > 0) await this.#hooks.hold(answer.barrier)
    if (answer.delayMs > 0) await sleep(answer.delayMs)
    if (kind === 'tunnel') {
      this.#tunnelBytes = tunnelBytes(exchange).length
      const accept =
        'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n'
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nx-id: ${exchange.id}\r\n${accept}\r\n`)
      return
    }
    const bytes = answerBytes(exchange)
    const end = brokenAt(exchange, bytes)
    await deliver(socket, bytes.wire.subarray(0, end), answer.delivery, () => this.#isEnded)
    if (answer.broken?.how === 'hang') return
    this.#isAnswering = false
    if (answer.broken?.how === 'reset') socket.resetAndDestroy()
    // Like servers that refuse an upload: the unread rest of the upload turns the close into a reset.
    else if (answer.early && answer.then === 'drop') socket.destroySoon()
    else if (answer.broken || answer.then !== 'keep' || answer.framing === 'until-close') socket.end()
  }

  /** Echoes the bytes of a tunnel, and ends the tunnel if the plan says that the backend does. */
  #echo(piece: Buffer, exchange: Exchange): void {
    const { tunnel } = exchange
    const socket = this.#socket
    if (!tunnel || !socket.writable) return
    if (!socket.write(piece)) {
      socket.pause()
      socket.once('drain', () => socket.resume())
    }
    this.#echoed += piece.length
    if (tunnel.end === 'backend' && this.#echoed >= this.#tunnelBytes) socket.end()
    else if (tunnel.end === 'backend-reset' && this.#echoed >= this.#tunnelBytes / 2) socket.resetAndDestroy()
  }
}
