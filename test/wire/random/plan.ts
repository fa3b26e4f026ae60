/** How bytes are written: in pieces drawn from `seed`, up to `most` bytes long, some followed by a pause. */
export type Delivery = {
  readonly seed: number
  readonly most: number
  readonly pauseShare: number
  readonly pauseMs: number
}

export type Upload = {
  readonly framing: 'length' | 'chunked'
  readonly bytes: number
  /** Maximum size of a chunk, if the body is chunked. */
  readonly chunkMost: number
  readonly delivery: Delivery
  /** Whether the request has `Expect: 100-continue`, and sends its content only after the answer to that. */
  readonly expectsContinue: boolean
}

/** How the backend answers a request. */
export type Answer = {
  readonly interim: readonly number[]
  readonly status: number
  readonly framing: 'length' | 'chunked' | 'until-close'
  readonly bytes: number
  readonly chunkMost: number
  readonly trailers: boolean
  /** Whether the response begins once the request's head has arrived, instead of the whole request. */
  readonly early: boolean
  readonly delayMs: number
  readonly delivery: Delivery
  /** `close` is announced in the response, `drop` is not. */
  readonly then: 'keep' | 'close' | 'drop'
  /** The response stops after this share of its bytes; after `hang`, the backend does nothing more. */
  readonly broken: { readonly share: number; readonly how: 'end' | 'reset' | 'hang' } | undefined
  /** The response waits until this many requests with a barrier have arrived; all are then answered together. */
  readonly barrier: number
}

/** The bytes sent both ways once the backend has accepted a WebSocket, and the side that ends the tunnel. */
export type TunnelPlan = {
  readonly bytes: number
  readonly delivery: Delivery
  readonly end: 'client' | 'client-reset' | 'backend' | 'backend-reset'
}

/** Where the client gives up: after a share of the request, or of the response's body. */
export type Cancel = {
  readonly where: 'request' | 'response'
  readonly share: number
  /** `stream` resets an HTTP/2 stream; the others end the connection. */
  readonly how: 'stream' | 'end' | 'reset'
}

/**
 * The backend answers `forward`, and `limited` unless it is over the limit. The gateway itself answers `options`, `trace`, `bad-target`,
 * and `noise`, which is not a request.
 */
export type ExchangeKind =
  | 'forward'
  | 'limited'
  | 'options'
  | 'trace'
  | 'bad-target'
  | 'noise'
  | 'refused-upgrade'
  | 'tunnel'

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

/** How a client reads: with occasional short pauses, and with one long pause. */
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
  /** The client's loopback address. */
  readonly address: string
  readonly exchanges: readonly Exchange[]
  /** Maximum number of unanswered requests. */
  readonly window: number
  readonly delivery: Delivery
  readonly reading: Reading
  /** Half-closes the connection after the last request. HTTP/1 only. */
  readonly halfCloses: boolean
  /** HTTP/2's `SETTINGS_INITIAL_WINDOW_SIZE`. */
  readonly streamWindow: number
}

/** The bounds with which the gateway of a batch was started. */
export type GatewayBounds = {
  readonly https: boolean
  /** 0 means no limit, as in the settings. */
  readonly maxBodyBytes: number
  /** Maximum bytes of a `PUT`, which a rule with devices reads; 0 without such a rule. */
  readonly maxPutBytes: number
  /** Whether the gateway's timeout for the backend is so short that a busy machine may cause a 504. */
  readonly isImpatient: boolean
}

/** How many requests of one client the rule for `/limited/…` allows. */
export const limitedQuota = 3

/** Whether a request reaches the backend if no limit refuses it. */
export function isForwarded({ kind }: Exchange): boolean {
  return kind === 'forward' || kind === 'limited' || kind === 'refused-upgrade' || kind === 'tunnel'
}

export function hasNoContent({ method, answer }: Exchange): boolean {
  return method === 'HEAD' || answer.status === 204 || answer.status === 304
}
