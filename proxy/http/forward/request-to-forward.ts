import type { Socket } from 'node:net'
import type { HeaderList } from '../message/header-list.ts'
import type { ClientRequest } from '../message/client-request.ts'
import type { ClientResponse } from '../message/client-response.ts'
import type { UpstreamTrace } from '../../telemetry/tracing/tracing.ts'
import type { ResponseHead } from '../upstream/response/response-head.ts'
import type { HeldBody } from './body/held-body.ts'

/** An allowed request, and the headers to add to it and to its response. */
export type RequestToForward = {
  readonly request: ClientRequest
  readonly response: ClientResponse
  /** The part of the body read before the request was allowed. */
  readonly held: HeldBody | undefined
  /** The client whose share of the connections to the backend it uses: an IPv4 address or an IPv6 network. */
  readonly client: string
  /** Path and query for the request line. */
  readonly target: string
  /** The headers for the backend, without those that frame the body. */
  readonly upstreamHeaders: HeaderList
  /** Headers to add to the response, unless a `settlement` provides them: name, value, name, value… */
  readonly responseHeaders: readonly string[]
  /** The reservations of the request, which its response settles. */
  readonly settlement: ResponseSettlement | undefined
  /** Rewrites the head of a response for the client, interim responses included. If undefined, the client gets the backend's. */
  readonly publicHead: ((head: ResponseHead) => ResponseHead) | undefined
  /** The span of the request to the backend; undefined without tracing. */
  readonly trace: UpstreamTrace | undefined
  readonly requestId: string
  /** Called when a streamed body exceeds `maxBodyBytes`. */
  readonly onBodyOverLimit: () => void
  /** Called when the backend accepts an upgrade. */
  readonly onUpgrade: ((head: ResponseHead, upstream: Socket, rest: Buffer) => void) | undefined
}

/** Observes the response as it is forwarded. */
export type ResponseSettlement = {
  /** Headers to add to the response, as far as they are known: name, value, name, value… */
  readonly responseHeaders: readonly string[]
  /** Returns the head that the client gets. */
  onHead(head: ResponseHead): ResponseHead
  onBody(chunk: Buffer): void
  /** Returns the trailers that the client gets: name, value, name, value…; names in lower case. */
  onTrailers(fields: readonly string[]): readonly string[]
  onEnd(): void
  /** Call if the backend will not see the request. */
  cancel(): void
}
