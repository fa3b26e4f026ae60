import { newOutcome, noteFault, takeBody, type Outcome } from './outcome.ts'
import type { Exchange } from './plan.ts'

type State = 'head' | 'length' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailers' | 'until-close' | 'tunnel'

const nothing = Buffer.alloc(0)

/**
 * Reads the responses to the requests of one HTTP/1 connection in order and strictly, and checks each piece of a body as it arrives.
 */
export class ResponseReader {
  readonly outcomes: readonly Outcome[]
  /** The number of complete responses. */
  completed = 0
  /** Whether a response has announced that the connection ends with it. */
  mayClose = false
  readonly #exchanges: readonly Exchange[]
  readonly #onTunnel: (piece: Buffer) => void
  #state: State = 'head'
  #held: Buffer = nothing
  #left = 0

  constructor(exchanges: readonly Exchange[], onTunnel: (piece: Buffer) => void) {
    this.#exchanges = exchanges
    this.#onTunnel = onTunnel
    this.outcomes = exchanges.map(newOutcome)
  }

  /** The exchange whose response is being read or awaited. */
  get current(): Outcome | undefined {
    return this.outcomes[this.completed]
  }

  get isInTunnel(): boolean {
    return this.#state === 'tunnel'
  }

  push(input: Buffer): void {
    let rest = input
    while (rest.length > 0) {
      const exchange = this.#exchanges[this.completed]
      const outcome = this.current
      if (!exchange || !outcome) return this.#stray(rest)
      if (outcome.fault !== undefined) return
      rest = this.#step(exchange, outcome, rest)
    }
  }

  /** Whether the last response on this connection has been read. */
  get isFinished(): boolean {
    return this.mayClose && this.#state === 'head'
  }

  /** Called when the gateway has closed its direction gracefully. */
  end(): void {
    const outcome = this.current
    if (outcome && this.#state === 'until-close') this.#complete(outcome)
  }

  #stray(bytes: Buffer): void {
    const last = this.outcomes.at(-1)
    const text = JSON.stringify(bytes.toString('latin1', 0, 200))
    if (last) noteFault(last, `${bytes.length} unexpected data outside a response: ${text}`)
  }

  #step(exchange: Exchange, outcome: Outcome, chunk: Buffer): Buffer {
    switch (this.#state) {
      case 'head':
        return this.#readHead(exchange, outcome, chunk)
      case 'length':
      case 'chunk': {
        const piece = chunk.subarray(0, this.#left)
        takeBody(outcome, exchange, piece)
        this.#left -= piece.length
        if (this.#left === 0 && this.#state === 'length') this.#complete(outcome)
        else if (this.#left === 0) this.#state = 'chunk-end'
        return chunk.subarray(piece.length)
      }
      case 'until-close':
        takeBody(outcome, exchange, chunk)
        return nothing
      case 'tunnel':
        this.#onTunnel(chunk)
        return nothing
      default:
        return this.#readLine(outcome, chunk)
    }
  }

  #readLine(outcome: Outcome, chunk: Buffer): Buffer {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk
    const end = bytes.indexOf('\r\n')
    if (end === -1) {
      this.#held = bytes
      if (bytes.length > 1_000) noteFault(outcome, 'an endless line in a chunked body')
      return nothing
    }
    this.#held = nothing
    const line = bytes.toString('latin1', 0, end)
    if (this.#state === 'chunk-end') {
      if (line !== '')
        noteFault(outcome, `a chunk does not end where it should, but with ${JSON.stringify(line)}`)
      this.#state = 'chunk-size'
    } else if (this.#state === 'trailers') {
      if (line === '') this.#complete(outcome)
    } else if (/^[0-9a-f]{1,8}$/i.test(line)) {
      this.#left = Number.parseInt(line, 16)
      this.#state = this.#left === 0 ? 'trailers' : 'chunk'
    } else noteFault(outcome, `not a chunk size: ${JSON.stringify(line)}`)
    return bytes.subarray(end + 2)
  }

  #readHead(exchange: Exchange, outcome: Outcome, chunk: Buffer): Buffer {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk
    const end = bytes.indexOf('\r\n\r\n')
    if (end === -1) {
      this.#held = bytes
      if (bytes.length > 32_000) noteFault(outcome, 'an endless head')
      return nothing
    }
    this.#held = nothing
    this.#begin(exchange, outcome, bytes.toString('latin1', 0, end))
    return bytes.subarray(end + 4)
  }

  #begin(exchange: Exchange, outcome: Outcome, head: string): void {
    const [statusLine = '', ...lines] = head.split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1])
    if (Number.isNaN(status)) return noteFault(outcome, `not a status line: ${JSON.stringify(statusLine)}`)
    if (status < 200 && status !== 101) {
      outcome.interim.push(status)
      return
    }
    const headers: Record<string, string> = {}
    for (const line of lines) {
      const [, name, value = ''] = /^([a-z0-9-]+): ?(.*)$/i.exec(line) ?? []
      if (name === undefined) return noteFault(outcome, `not a header line: ${JSON.stringify(line)}`)
      const key = name.toLowerCase()
      headers[key] = key in headers ? `${headers[key] ?? ''}, ${value}` : value
    }
    outcome.status = status
    outcome.headers = headers
    if (headers['connection']?.toLowerCase().split(/, */).includes('close')) this.mayClose = true
    this.#chooseBody(exchange, outcome, status)
  }

  #chooseBody(exchange: Exchange, outcome: Outcome, status: number): void {
    const length = outcome.headers['content-length']
    const coding = outcome.headers['transfer-encoding']
    if (length !== undefined && coding !== undefined)
      noteFault(outcome, 'both Content-Length and Transfer-Encoding')
    if (length !== undefined && !/^\d{1,12}$/.test(length)) noteFault(outcome, `a length of ${length}`)
    if (status === 101) this.#state = 'tunnel'
    else if (exchange.method === 'HEAD' || status === 204 || status === 304) this.#complete(outcome)
    else if (coding === 'chunked') this.#state = 'chunk-size'
    else if (coding !== undefined) noteFault(outcome, `a coding of ${coding}`)
    else if (length !== undefined) {
      this.#left = Number(length)
      if (this.#left === 0) this.#complete(outcome)
      else this.#state = 'length'
    } else this.#state = 'until-close'
  }

  #complete(outcome: Outcome): void {
    outcome.complete = true
    this.completed++
    this.#state = 'head'
  }
}
