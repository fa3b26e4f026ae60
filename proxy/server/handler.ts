import type { ClientRequest, ClientResponse } from '../http/messages.ts'
import { connectionOf, peerOf } from '../request/connection-peer.ts'
import { Exchange } from './exchange.ts'
import type { HandlerOptions, OnUpgrade } from './handler-options.ts'

export type Handler = (request: ClientRequest, response: ClientResponse, onUpgrade?: OnUpgrade) => void

/**
 * Handles a request: client address, target, rules, one decision, then forward or refuse. A request that matches no
 * rule is forwarded without asking the store. A request whose connection has already closed is dropped.
 *
 * Throws only if a request cannot be started; exceptions of its steps, synchronous or not, go to `onException`.
 */
export function createHandler(options: HandlerOptions): Handler {
  return (request, response, onUpgrade) => {
    const peer = peerOf(request, options)
    if (!peer) {
      connectionOf(request).destroy()
      return
    }
    const exchange = new Exchange(options, peer, request, response, onUpgrade)
    exchange.guard(() => exchange.begin())
  }
}
