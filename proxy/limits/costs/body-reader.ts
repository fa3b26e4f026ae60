import { linesOf } from '../../http/message/headers.ts'
import { tokensOf } from './estimate.ts'
import { EventNumbers } from './event-numbers.ts'
import { JsonNumbers } from './json-numbers.ts'

/** Why the body of a response is not read: it is neither JSON nor server-sent events (`type`), or it has a content coding (`encoding`). */
export type UnreadBody = 'type' | 'encoding'

/** Reads the stated cost and estimates the tokens of a response's body while it is forwarded. */
export type BodyReader = {
  push(chunk: Buffer): void
  /** The number at a path, a whole number from 0; undefined if the bytes read so far have no number there. */
  valueAt(path: string): number | undefined
  /** Whether the bytes received are a complete JSON text, or events. */
  readonly isWhole: boolean
  /** Whether the cost read so far is final even if the body is truncated here. */
  readonly isCostFinal: boolean
  readonly unread: UnreadBody | undefined
  /** Estimated language-model tokens received so far, if tokens are estimated. */
  readonly tokens: number
}

/**
 * Makes a reader for JSON, or for server-sent events with JSON data. For events, the number in the last event that has one counts. Uses
 * constant memory.
 *
 * @param paths names of members, joined by dots
 * @param fields of the response: name in lower case, value, name, value…
 * @param isMeasured whether to estimate tokens
 */
export function createBodyReader(
  paths: readonly string[],
  fields: readonly string[],
  isMeasured: boolean,
): BodyReader {
  const type = fieldOf(fields, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const encoding = fieldOf(fields, 'content-encoding')?.trim().toLowerCase() ?? 'identity'
  if (encoding !== 'identity') return createUnreadReader('encoding')
  if (type === 'text/event-stream') return createEventReader(paths, isMeasured)
  return type === 'application/json' || type.endsWith('+json')
    ? createDocumentReader(paths)
    : createUnreadReader('type')
}

/**
 * Returns the cost that a header states; if it has several lines, the highest.
 *
 * @returns undefined if the header is missing, or no line of it is a whole number from 0
 */
export function unitsFrom(fields: readonly string[], name: string): number | undefined {
  const numbers = linesOf(fields, name)
    .map((line) => line.trim())
    .filter((text) => /^\d{1,100}$/.test(text))
    .map(Number)
  return numbers.length > 0 ? Math.min(Math.max(...numbers), Number.MAX_SAFE_INTEGER) : undefined
}

function createDocumentReader(paths: readonly string[]): BodyReader {
  const numbers = new JsonNumbers(paths)
  let bytes = 0
  return {
    push(chunk) {
      bytes += chunk.length
      numbers.push(chunk)
    },
    valueAt: (path) => numbers.valueAt(path),
    get isWhole() {
      return numbers.isWhole
    },
    get isCostFinal() {
      return numbers.isWhole
    },
    unread: undefined,
    get tokens() {
      return tokensOf(bytes)
    },
  }
}

function createEventReader(paths: readonly string[], isMeasured: boolean): BodyReader {
  const events = new EventNumbers(paths, isMeasured)
  return {
    push: (chunk) => events.push(chunk),
    valueAt: (path) => events.valueAt(path),
    // Text after the last blank line is a truncated event, and does not count.
    isWhole: true,
    get isCostFinal() {
      return events.isCostFinal
    },
    unread: undefined,
    get tokens() {
      return events.tokens
    },
  }
}

function createUnreadReader(unread: UnreadBody): BodyReader {
  let bytes = 0
  return {
    push: (chunk) => void (bytes += chunk.length),
    valueAt: () => undefined,
    isWhole: true,
    isCostFinal: false,
    unread,
    get tokens() {
      // Measured for gzip and Brotli: texts of models have at least 1.1 compressed bytes per token.
      return unread === 'encoding' ? bytes : tokensOf(bytes)
    },
  }
}

function fieldOf(fields: readonly string[], name: string): string | undefined {
  const place = fields.findIndex((field, i) => i % 2 === 0 && field === name)
  return place === -1 ? undefined : fields[place + 1]
}
