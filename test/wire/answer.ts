/** Bytes of a backend, what the client gets of them, and why. */
export type AnswerVector = {
  readonly name: string
  /** The whole answer. Latin-1 text, one character a byte. */
  readonly bytes: string
  /** What the backend does after it. */
  readonly then: 'keep' | 'close' | 'reset'
  readonly verdict: AnswerVerdict
  readonly rfc: string
  readonly why: string
  /** Method of the request, `GET` unless given. */
  readonly method?: string
  /** Text that the response's head has in it, and what it must not have. Letter case is ignored. */
  readonly says?: readonly string[]
  readonly lacks?: readonly string[]
  /** A `broken` one that says its length, by which even an HTTP/1.0 client sees that it is truncated, without a reset. */
  readonly hasLength?: boolean
  /** Interim responses that an HTTP/1.1 client gets before. */
  readonly interim?: readonly number[]
}

/**
 * `status` and `body` of the response, or `broken`: the client gets a part of the backend's response, in which it cannot
 * see the whole.
 */
export type AnswerVerdict = { readonly status: number; readonly body: string } | 'broken'

export const badGateway: AnswerVerdict = {
  status: 502,
  body: '{"code":502,"error":"The backend cannot be reached"}',
}

export function passedOn(body: string, status = 200): AnswerVerdict {
  return { status, body }
}

type Row = readonly [
  name: string,
  bytes: string,
  verdict: AnswerVerdict,
  more?: Partial<Omit<AnswerVector, 'name' | 'bytes' | 'verdict'>>,
]

/** Vectors that share their source and their reason. After the answer the backend waits for the next request. */
export function answers(rfc: string, why: string, rows: readonly Row[]): AnswerVector[] {
  return rows.map(([name, bytes, verdict, more]) => ({
    name,
    bytes,
    verdict,
    then: 'keep',
    rfc,
    why,
    ...more,
  }))
}

/** A response with these field lines, each without its line end. */
export function ok(...lines: string[]): string {
  return ['HTTP/1.1 200 OK', ...lines, '', ''].join('\r\n')
}
