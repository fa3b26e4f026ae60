/** A request as recorded in an access log. Texts have one character per byte. */
export type LoggedRequest = {
  /** The time when the request arrived, or when it ended if the log has no duration, in milliseconds since 1970. */
  readonly timeMs: number
  /** The duration; undefined if the log does not have it. */
  readonly durationMs: number | undefined
  readonly ip: string
  readonly method: string
  readonly target: string
  /** The host; undefined if the log does not have it. `status` is the status of the response that was sent at the time. */
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
  /** Headers that the format records: if one is not in `headers`, the request did not have it. */
  readonly headers: ReadonlySet<string> | 'all'
}

/**
 * The result of reading a line: a request; `other`, which is anything else that a log of this format contains; or `why` the line cannot be
 * read.
 */
export type ReadLine = LoggedRequest | 'other' | { readonly why: string }

export const noHeaders: Readonly<Record<string, string>> = Object.freeze({})
