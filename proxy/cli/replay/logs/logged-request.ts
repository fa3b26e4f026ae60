/** A request as recorded in an access log. Texts have one character for each byte. */
export type LoggedRequest = {
  /** When it arrived, or when it ended if the log has no duration. Milliseconds since 1970. */
  readonly timeMs: number
  /** Undefined if the log does not tell. */
  readonly durationMs: number | undefined
  readonly ip: string
  readonly method: string
  readonly target: string
  /** Undefined if the log does not tell; the status is that of the response that was sent then. */
  readonly host: string | undefined
  readonly status: number | undefined
  /** By lower-case name; those that are known. */
  readonly headers: Readonly<Record<string, string>>
  readonly knows: Knowledge
}

/** The fields of requests that a log format records. */
export type Knowledge = {
  readonly format: string
  readonly query: boolean
  /** Headers of which it is known that a request has none, if it has none. */
  readonly headers: ReadonlySet<string> | 'all'
}

/** A line is a request, something else that a log of this format has, or `why` it cannot be read. */
export type ReadLine = LoggedRequest | 'other' | { readonly why: string }

export const noHeaders: Readonly<Record<string, string>> = Object.freeze({})
