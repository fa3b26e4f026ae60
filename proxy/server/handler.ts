import type { ClientRequest, ClientResponse } from '../http/message/messages.ts'
import type { Peer } from '../request/addresses/client-address.ts'
import { connectionOf, peerOf } from '../request/connection-peer.ts'
import { AuthRequest } from './auth-request.ts'
import { Exchange } from './exchange.ts'
import type { HandlerOptions, OnUpgrade } from './handler-options.ts'
import type { RequestSteps } from './request-steps.ts'

/** What the steps of requests use. Each request keeps to the end what it found here at its beginning. */
export type LiveOptions = { readonly options: HandlerOptions }

export type Handler = (request: ClientRequest, response: ClientResponse, onUpgrade?: OnUpgrade) => void

/**
 * Handles a request: client address, target, rules, one decision, then forward or refuse. A request that matches no
 * rule is forwarded without asking the store. A request whose connection has already closed is dropped.
 *
 * Throws only if a request cannot be started; exceptions of its steps, synchronous or not, go to `onException`.
 */
export function createHandler(live: LiveOptions): Handler {
  return createStepsHandler(
    live,
    (options, peer, request, response, onUpgrade) =>
      new Exchange(options, peer, request, response, onUpgrade),
  )
}

/** Handles an auth request: decides about the original request as if it had come here, and answers with the decision. */
export function createAuthHandler(live: LiveOptions): Handler {
  return createStepsHandler(
    live,
    (options, peer, request, response) => new AuthRequest(options, peer, request, response),
  )
}

function createStepsHandler(
  live: LiveOptions,
  createSteps: (
    options: HandlerOptions,
    peer: Peer,
    request: ClientRequest,
    response: ClientResponse,
    onUpgrade: OnUpgrade | undefined,
  ) => RequestSteps,
): Handler {
  return (request, response, onUpgrade) => {
    const { options } = live
    const peer = peerOf(request, options)
    if (!peer) {
      connectionOf(request).destroy()
      return
    }
    const steps = createSteps(options, peer, request, response, onUpgrade)
    steps.guard(() => steps.begin())
  }
}
