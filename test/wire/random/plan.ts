/** In which pieces bytes are written: `seed` cuts them, none longer than `most`, some followed by a pause. */
export type Delivery = {
  readonly seed: number
  readonly most: number
  readonly pauseShare: number
  readonly pauseMs: number
}

export type Upload = {
  readonly framing: 'length' | 'chunked'
  readonly bytes: number
  /** Longest chunk where it is chunked. */
  readonly chunkMost: number
  readonly delivery: Delivery
  /** `Expect: 100-continue`: the content is sent once there is an answer to that. */
  readonly expectsContinue: boolean
}

/** What the backend does with a request. */
export type Answer = {
  readonly interim: readonly number[]
  readonly status: number
  readonly framing: 'length' | 'chunked' | 'until-close'
  readonly bytes: number
  readonly chunkMost: number
  readonly trailers: boolean
  /** Begins when the request's head is there, not when all of it is. */
  readonly early: boolean
  readonly delayMs: number
  readonly delivery: Delivery
  /** `close` is announced, `drop` is not. */
  readonly then: 'keep' | 'close' | 'drop'
  /** Stops after this share of the answer's bytes; `hang` then says and does nothing more. */
  readonly broken: { readonly share: number; readonly how: 'end' | 'reset' | 'hang' } | undefined
  /** Waits until so many requests with a barrier are there, and is answered with them. */
  readonly barrier: number
}

/** The bytes sent both ways once the backend has accepted a WebSocket, and the side that ends it. */
export type TunnelPlan = {
  readonly bytes: number
  readonly delivery: Delivery
  readonly end: 'client' | 'client-reset' | 'backend' | 'backend-reset'
}

/** Where the client gives up: so many bytes into the request, or into the response's body. */
export type Cancel = {
  readonly where: 'request' | 'response'
  readonly share: number
  /** `stream` resets an HTTP/2 stream; the others end the connection. */
  readonly how: 'stream' | 'end' | 'reset'
}

/**
 * `forward` is the backend's to answer, `limited` too unless it is over the limit. The gateway answers `options`, `trace` and
 * `bad-target` itself, and `noise`, which is not a request.
 */
export type ExchangeKind =
  'forward' | 'limited' | 'options' | 'trace' | 'bad-target' | 'noise' | 'refused-upgrade' | 'tunnel'

export type Exchange = {
  /** The id of this exchange, unique in the run. */
  readonly id: number
  readonly kind: ExchangeKind
  readonly method: string
  readonly version: '1.1' | '1.0'
  readonly asksToClose: boolean
  readonly upload: Upload | undefined
  readonly answer: Answer
  readonly tunnel: TunnelPlan | undefined
  readonly cancel: Cancel | undefined
}

/** How a client reads: now and then not for a while, and once not for long. */
export type Reading = {
  readonly pauseShare: number
  readonly pauseMs: number
  readonly stallAfterBytes: number
  readonly stallMs: number
}

export type Protocol = 'http' | 'https' | 'h2'

/** What one client does on one connection. */
export type Conversation = {
  readonly protocol: Protocol
  /** The client's, of loopback. */
  readonly address: string
  readonly exchanges: readonly Exchange[]
  /** Requests that may be unanswered at a time. */
  readonly window: number
  readonly delivery: Delivery
  readonly reading: Reading
  /** Ends its direction after the last request. HTTP/1 only. */
  readonly halfCloses: boolean
  /** HTTP/2's `SETTINGS_INITIAL_WINDOW_SIZE`. */
  readonly streamWindow: number
}

/** Bounds that the gateway of a batch was started with. */
export type GatewayBounds = {
  readonly https: boolean
  /** 0 means no limit, as in the settings. */
  readonly maxBodyBytes: number
  /** Maximum bytes of a `PUT`, which a rule with devices reads; 0 without such a rule. */
  readonly maxPutBytes: number
  /** Waits so short for the backend that a busy machine may be the reason of a 504. */
  readonly isImpatient: boolean
}

/** Requests of one client that are let pass under the rule for `/limited/…`. */
export const limitedQuota = 3

/** Whether a request reaches the backend if it is let pass. */
export function isForwarded({ kind }: Exchange): boolean {
  return kind === 'forward' || kind === 'limited' || kind === 'refused-upgrade' || kind === 'tunnel'
}

export function hasNoContent({ method, answer }: Exchange): boolean {
  return method === 'HEAD' || answer.status === 204 || answer.status === 304
}
