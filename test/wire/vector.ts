/** What must come of the bytes of a vector, whatever pieces they are sent in. */
export type Verdict = {
  /** Statuses of the responses, in order. `200` is the backend's, the rest are the gateway's own. */
  readonly statuses: readonly number[]
  /**
   * The requests that the backend sees whole, in order of their arrival: method, target, and the content after a blank.
   */
  readonly backend: readonly string[]
  /** A request of which the backend may see the start, as method and target, and never the end. */
  readonly unfinished?: string
}

/** Bytes of a client, their expected outcome, and why. */
export type Vector = {
  readonly name: string
  /** Latin-1 text, one character a byte. */
  readonly bytes: string
  readonly verdict: Verdict
  /** Where it is written: a section of an RFC, or an advisory. */
  readonly rfc: string
  readonly why: string
  /**
   * Values of fields as the first request has them at the backend, one for each line; none where it must be absent. `framed` is `once`
   * where one field says how its content ends, whichever it is.
   */
  readonly sees?: Readonly<Record<string, readonly string[]>>
  /** Text that the first response's head has in it. */
  readonly says?: string
  /** The client ends its sending direction after the bytes. */
  readonly halfClose?: boolean
  /** Interim responses before the final ones. */
  readonly interim?: readonly number[]
}

/** Each of these requests reaches the backend and gets its answer. */
export function forwarded(...backend: string[]): Verdict {
  return { statuses: backend.map(() => 200), backend }
}

/** The gateway answers by itself, and nothing reaches the backend. */
export function refused(status: number): Verdict {
  return { statuses: [status], backend: [] }
}

/** The request is found faulty when it may have begun to be forwarded: the backend never sees it whole. */
export function brokenOff(status: number, unfinished: string): Verdict {
  return { statuses: [status], backend: [], unfinished }
}

/** Several of the above on one connection, of which the last may be broken off. */
export function inTurn(...verdicts: Verdict[]): Verdict {
  return {
    ...verdicts.at(-1),
    statuses: verdicts.flatMap(({ statuses }) => statuses),
    backend: verdicts.flatMap(({ backend }) => backend),
  }
}

/** A request with `Host` and further lines, each without its line end. */
export function request(requestLine: string, ...lines: string[]): string {
  return [`${requestLine} HTTP/1.1`, 'Host: wire.example', ...lines, '', ''].join('\r\n')
}

/** The same for a `POST` with chunked content that is given as sent. */
export function chunked(target: string, content: string, ...lines: string[]): string {
  return request(`POST ${target}`, 'Transfer-Encoding: chunked', ...lines) + content
}

type Row = readonly [name: string, bytes: string, verdict: Verdict, more?: Omit<Partial<Vector>, 'name'>]

/** Vectors that share their source and their reason. */
export function because(rfc: string, why: string, rows: readonly Row[]): Vector[] {
  return rows.map(([name, bytes, verdict, more]) => ({ name, bytes, verdict, rfc, why, ...more }))
}
