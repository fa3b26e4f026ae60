/** The required outcome of a vector, no matter in which pieces its bytes are sent. */
export type Verdict = {
  /** Statuses of the responses, in order. `200` is the backend's, all others are the gateway's own. */
  readonly statuses: readonly number[]
  /**
   * The complete requests that the backend sees, in order of arrival: method, target, and the content after a blank.
   */
  readonly backend: readonly string[]
  /** A request, as method and target, of which the backend may see the start but never the end. */
  readonly unfinished?: string
}

/** The bytes of a client, their expected outcome, and the reason. */
export type Vector = {
  readonly name: string
  /** Latin-1 text, one character a byte. */
  readonly bytes: string
  readonly verdict: Verdict
  /** The source: a section of an RFC, or an advisory. */
  readonly rfc: string
  readonly why: string
  /**
   * Values of fields that the backend must see in the first request, one for each line; empty if the field must be absent. `framed` is
   * `once` if exactly one field, no matter which, frames the content.
   */
  readonly sees?: Readonly<Record<string, readonly string[]>>
  /** Text that the first response's head must contain. */
  readonly says?: string
  /** The client half-closes the connection after the bytes. */
  readonly halfClose?: boolean
  /** Interim responses before the final ones. */
  readonly interim?: readonly number[]
}

/** Each of these requests reaches the backend and gets its response. */
export function forwarded(...backend: string[]): Verdict {
  return { statuses: backend.map(() => 200), backend }
}

/** The gateway answers by itself, and nothing reaches the backend. */
export function refused(status: number): Verdict {
  return { statuses: [status], backend: [] }
}

/** The gateway finds the fault when it may already be forwarding the request: the backend never sees it complete. */
export function brokenOff(status: number, unfinished: string): Verdict {
  return { statuses: [status], backend: [], unfinished }
}

/** Several verdicts in order on one connection; the last may be broken off. */
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

/** A chunked `POST` with `Host` and further lines; `content` is given as sent, with its chunked framing. */
export function chunked(target: string, content: string, ...lines: string[]): string {
  return request(`POST ${target}`, 'Transfer-Encoding: chunked', ...lines) + content
}

type Row = readonly [name: string, bytes: string, verdict: Verdict, more?: Omit<Partial<Vector>, 'name'>]

/** Vectors that share their source and their reason. */
export function because(rfc: string, why: string, rows: readonly Row[]): Vector[] {
  return rows.map(([name, bytes, verdict, more]) => ({ name, bytes, verdict, rfc, why, ...more }))
}
