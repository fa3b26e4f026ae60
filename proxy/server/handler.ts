import type { ClientRequest, ClientResponse } from '../http/message/messages.ts'
import { connectionOf, peerOf } from '../request/addresses/client-address.ts'
import { AuthRequest } from './auth-request.ts'
import { Exchange } from './exchange.ts'
import type { HandlerOptions, OnUpgrade } from './handler-options.ts'

/** What the steps of requests use. Each request keeps to the end what it found here at its beginning. */
export type LiveOptions = { readonly options: HandlerOptions }

export type Handler = (request: ClientRequest, response: ClientResponse, onUpgrade?: OnUpgrade) => void

/**
 * Handles a request: decides what becomes of it, then forwards or refuses it. A request that matches no rule is forwarded
 * without asking the store. A request whose connection has already closed is dropped.
 *
 * Throws only if a request cannot be started; exceptions of its steps, synchronous or not, go to `onException`.
 */
export function createHandler(live: LiveOptions): Handler {
  return (request, response, onUpgrade) => {
    const { options } = live
    const peer = peerOf(request, options)
    if (!peer) return void connectionOf(request).destroy()
    const exchange = new Exchange(options, peer, request, response, onUpgrade)
    exchange.guard(() => exchange.begin())
  }
}

/** Handles an auth request: decides about the original request as if it had come here, and answers with the decision. */
export function createAuthHandler(live: LiveOptions): Handler {
  return (request, response) => {
    const { options } = live
    const peer = peerOf(request, options)
    if (!peer) return void connectionOf(request).destroy()
    const auth = new AuthRequest(options, peer, request, response)
    const exchange = new Exchange(options, peer, request, response, undefined, auth)
    exchange.guard(() => exchange.begin())
  }
}
