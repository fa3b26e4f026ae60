import { linesOf } from '../../http/message/headers.ts'
import { tokensOf } from './estimate.ts'
import { EventNumbers } from './event-numbers.ts'
import { JsonNumbers } from './json-numbers.ts'

/** The reason why the body of a response is not read: it is neither JSON nor server-sent events, or has a content coding. */
export type UnreadBody = 'type' | 'encoding'

/** Reads the body of a response as it is forwarded: the cost that it states, and an estimate of its tokens. */
export type BodyReader = {
  push(chunk: Buffer): void
  /** The number at a path, a whole number from 0; undefined if the bytes read so far do not have one. */
  valueAt(path: string): number | undefined
  /** The received bytes are a complete JSON text, or events. */
  readonly isWhole: boolean
  /** Whether the cost stated so far is final even if the body is cut here. */
  readonly isCostFinal: boolean
  readonly unread: UnreadBody | undefined
  /** Estimated tokens of a language model received so far, if they are measured. */
  readonly tokens: number
}

/**
 * Makes a reader for JSON, or for server-sent events with JSON in their data: the last event that has a number counts. Uses constant
 * memory.
 *
 * @param paths names of members, joined by dots
 * @param fields of the response: name in lower case, value, name, value…
 * @param isMeasured tokens are estimated
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
 * The cost that a header says: of several lines the highest.
 *
 * @returns undefined if there is no such header, or where no line of it is one whole number from 0
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
      // Measured for gzip and Brotli: texts of models have 1.1 compressed bytes a token and more.
      return unread === 'encoding' ? bytes : tokensOf(bytes)
    },
  }
}

function fieldOf(fields: readonly string[], name: string): string | undefined {
  const place = fields.findIndex((field, i) => i % 2 === 0 && field === name)
  return place === -1 ? undefined : fields[place + 1]
}
