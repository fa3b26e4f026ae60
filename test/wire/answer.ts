/** A response of a backend, what the client must get, and why. */
export type AnswerVector = {
  readonly name: string
  /** The whole response, as Latin-1 text, one character a byte. */
  readonly bytes: string
  /** What the backend does after the response. */
  readonly then: 'keep' | 'close' | 'reset'
  readonly verdict: AnswerVerdict
  readonly rfc: string
  readonly why: string
  /** Method of the request, `GET` unless given. */
  readonly method?: string
  /** Texts that the response's head must contain (`says`) and must not contain (`lacks`), ignoring case. */
  readonly says?: readonly string[]
  readonly lacks?: readonly string[]
  /** A `broken` response that declares its length, so that even an HTTP/1.0 client sees the truncation without a reset. */
  readonly hasLength?: boolean
  /** Interim responses that an HTTP/1.1 client gets before the final one. */
  readonly interim?: readonly number[]
}

/**
 * The `status` and `body` of the response. Or `broken`: the client gets a part of the backend's response, and can tell that it is
 * incomplete.
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

/** Vectors that share their source and their reason. Unless a row says otherwise, the backend then waits for the next request. */
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
