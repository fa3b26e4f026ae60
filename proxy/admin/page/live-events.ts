import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Log } from '../../../shared/log.ts'

/** Maximum number of listeners. Each holds a connection, and each event is written to all of them. */
const MAX_LISTENERS = 8
/** Milliseconds between events. Including the exchange with other replicas, a refusal is shown within a second. */
const INTERVAL_MS = 500
/** Maximum unread bytes of a listener. A listener that is a few events behind gets no further events until it has read these. */
const MAX_UNREAD_BYTES = 1024 * 1024

export type LiveEventsOptions = {
  /** The data of an event; called once for all listeners. */
  readonly readStatus: () => Promise<object>
  readonly readHistory: () => Promise<object>
  readonly log: Log
}

/**
 * Server-sent events (HTML, section 9.2): one `history` event for each new listener, then a `status` event twice a second. A `status` event
 * contains the whole state, so a listener that reconnects does not need events that it missed. Ids continue from `Last-Event-ID`, even
 * after a restart of the gateway. Without listeners, nothing is read.
 */
export class LiveEvents {
  readonly #options: LiveEventsOptions
  readonly #listeners = new Set<ServerResponse>()
  /** Listeners whose `history` event has not been sent yet. */
  readonly #ungreeted = new Set<ServerResponse>()
  #timer: NodeJS.Timeout | undefined
  #lastId = 0
  #isReading = false

  constructor(options: LiveEventsOptions) {
    this.#options = options
  }

  /** Sends events until the client disconnects. Returns false if the maximum number of listeners is reached. */
  follow(request: IncomingMessage, response: ServerResponse): boolean {
    if (this.#listeners.size >= MAX_LISTENERS) return false
    this.#lastId = Math.max(this.#lastId, readId(request.headers['last-event-id']))
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Accel-Buffering': 'no',
    })
    if (request.method === 'HEAD') {
      response.end()
      return true
    }
    response.write('retry: 1000\n\n')
    this.#listeners.add(response)
    this.#ungreeted.add(response)
    response.once('close', () => this.#leave(response))
    this.#timer ??= setInterval(() => void this.#tick(), INTERVAL_MS)
    void this.#greet(response)
    return true
  }

  #leave(response: ServerResponse): void {
    this.#listeners.delete(response)
    if (this.#listeners.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Sends the history, then the current state. */
  async #greet(listener: ServerResponse): Promise<void> {
    const { readHistory, log } = this.#options
    try {
      listener.write(`event: history\ndata: ${JSON.stringify(await readHistory())}\n\n`)
    } catch (err) {
      log.error({ err }, 'cannot read the history for the page')
    } finally {
      this.#ungreeted.delete(listener)
    }
    await this.#tick()
  }

  async #tick(): Promise<void> {
    const { readStatus, log } = this.#options
    if (this.#isReading) {
      this.#sendAll(': waiting\n\n')
      return
    }
    this.#isReading = true
    try {
      const data = JSON.stringify(await readStatus())
      this.#sendAll(`id: ${++this.#lastId}\nevent: status\ndata: ${data}\n\n`)
    } catch (err) {
      log.error({ err }, 'cannot read the status for the page')
      this.#sendAll(': no status\n\n')
    } finally {
      this.#isReading = false
    }
  }

  #sendAll(text: string): void {
    for (const listener of this.#listeners) {
      if (!this.#ungreeted.has(listener) && listener.writableLength < MAX_UNREAD_BYTES) listener.write(text)
    }
  }
}

function readId(text: unknown): number {
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : 0
}
