/** A request as recorded in an access log. Texts have one character for each byte. */
export type LoggedRequest = {
  /** When the request arrived, or when it ended if the log has no duration, in milliseconds since 1970. */
  readonly timeMs: number
  /** The duration; undefined if the log does not have it. */
  readonly durationMs: number | undefined
  readonly ip: string
  readonly method: string
  readonly target: string
  /** The host; undefined if the log does not have it. The status is that of the response that was sent then. */
  readonly host: string | undefined
  readonly status: number | undefined
  /** The known headers by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly knows: Knowledge
}

/** The fields of requests that a log format records. */
export type Knowledge = {
  readonly format: string
  readonly query: boolean
  /** Headers that are known to be missing if a request does not have them here. */
  readonly headers: ReadonlySet<string> | 'all'
}

/** A line is a request, something else that a log of this format has, or `why` it cannot be read. */
export type ReadLine = LoggedRequest | 'other' | { readonly why: string }

export const noHeaders: Readonly<Record<string, string>> = Object.freeze({})
