import type { Socket } from 'node:net'
import type { UpstreamChannel, UpstreamExchange } from '../exchange.ts'
import type { UpstreamFailure } from '../failure.ts'
import type { ResponseHead } from '../response/response-head.ts'
import { isUnsent, type Server } from './server.ts'

/** Chooses another server for a request when its server fails. */
export type FailoverTarget = {
  /** The request is about to be sent to this server. */
  begin(server: Server): void
  /** The request has failed at this server. */
  fail(server: Server, failure: UpstreamFailure): void
  /** Chooses another server, whose turn it then was; undefined if there is no other. */
  chooseOther(tried: ReadonlySet<Server>): Server | undefined
}

/**
 * A request to one of several servers. If the server fails, the request fails over to another one, provided that this is safe: the request
 * was not sent, or it is idempotent, has no body, and no part of a response has arrived. If only a reused connection was closed, the same
 * server first gets the request on a new one.
 */
export class MovingExchange implements UpstreamExchange {
  readonly method: string
  readonly client: string
  readonly #exchange: UpstreamExchange
  readonly #failoverTarget: FailoverTarget
  readonly #tried = new Set<Server>()
  #server: Server
  /** The server that got the request again on a new connection, because it had closed a reused one. */
  #again: Server | undefined

  constructor(exchange: UpstreamExchange, server: Server, failoverTarget: FailoverTarget) {
    this.method = exchange.method
    this.client = exchange.client
    this.#exchange = exchange
    this.#server = server
    this.#failoverTarget = failoverTarget
  }

  send(): void {
    this.#tried.add(this.#server)
    this.#failoverTarget.begin(this.#server)
    this.#server.pool.send(this)
  }

  get isCancelled(): boolean {
    return this.#exchange.isCancelled
  }

  get headBytes(): number {
    return this.#exchange.headBytes
  }

  get isBodyPending(): boolean {
    return this.#exchange.isBodyPending
  }

  get upgrades(): boolean {
    return this.#exchange.upgrades
  }

  get isRetryable(): boolean {
    return this.#exchange.isRetryable
  }

  start(connection: UpstreamChannel): void {
    this.#exchange.start(connection)
  }

  onInterimResponse(head: ResponseHead): void {
    this.#exchange.onInterimResponse(head)
  }

  onHead(head: ResponseHead): void {
    this.#server.recordSuccess()
    this.#exchange.onHead(head)
  }

  onBody(chunk: Buffer, last: boolean): void {
    this.#exchange.onBody(chunk, last)
  }

  onReadEnd(): void {
    this.#exchange.onReadEnd()
  }

  onTrailers(fields: readonly string[]): void {
    this.#exchange.onTrailers(fields)
  }

  onEnd(): void {
    this.#exchange.onEnd()
  }

  onUpgrade(head: ResponseHead, socket: Socket, rest: Buffer): void {
    this.#server.recordSuccess()
    this.#exchange.onUpgrade(head, socket, rest)
  }

  onFailure(failure: UpstreamFailure): void {
    // The connections to the other servers may have been closed too, so moving on could fail at each of them.
    if (
      failure.onReusedConnection &&
      !failure.isUnprocessed &&
      this.isRetryable &&
      this.#again !== this.#server
    ) {
      this.#again = this.#server
      return this.#server.pool.retry(this)
    }
    this.#failoverTarget.fail(this.#server, failure)
    const mayMove = isUnsent(failure.kind) ? !this.isCancelled : isServerFault(failure) && this.isRetryable
    // Choosing a server for a request that stays would take the turn of the next request, which would then go to this one.
    const other = mayMove ? this.#failoverTarget.chooseOther(this.#tried) : undefined
    if (!other) return this.#exchange.onFailure(failure)
    this.#server = other
    this.send()
  }
}

function isServerFault({ kind }: UpstreamFailure): boolean {
  return kind === 'reset' || kind === 'timeout'
}
