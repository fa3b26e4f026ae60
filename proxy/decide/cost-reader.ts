import type { CostSource } from '../policy.ts'
import { jsonNumberAt } from './json-number.ts'

/** Reads from a response's body, as it passes by, what the request has cost. */
export type CostReader = {
  push(chunk: Buffer): void
  /** A whole number from 0; undefined where nothing that was read says so. */
  readonly units: number | undefined
}

/** Bytes of a body, or of one event of a stream, that are read at most. */
const LONGEST_TEXT = 64 * 1024

/**
 * For a body of JSON, or of server-sent events with JSON in their data: the last event that says it counts.
 *
 * @param fields of the response: name in lower case, value, name, value…
 * @returns undefined for bodies that cannot be read, such as compressed ones
 */
export function createCostReader(
  { path }: Extract<CostSource, { kind: 'json' }>,
  fields: readonly string[],
): CostReader | undefined {
  const type = fieldOf(fields, 'content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const encoding = fieldOf(fields, 'content-encoding')?.trim().toLowerCase() ?? 'identity'
  if (encoding !== 'identity') return undefined
  if (type === 'text/event-stream') return createEventReader(path)
  return type === 'application/json' || type.endsWith('+json') ? createDocumentReader(path) : undefined
}

/**
 * The cost that a header says.
 *
 * @returns undefined where there is no such header, or where it is not one whole number from 0
 */
export function unitsFrom(fields: readonly string[], name: string): number | undefined {
  const text = fieldOf(fields, name)?.trim() ?? ''
  return /^\d{1,100}$/.test(text) ? Math.min(Number(text), Number.MAX_SAFE_INTEGER) : undefined
}

function createDocumentReader(path: readonly string[]): CostReader {
  let text = ''
  return {
    push(chunk) {
      if (text.length <= LONGEST_TEXT) text += chunk.toString('latin1')
    },
    get units() {
      return text.length <= LONGEST_TEXT ? jsonNumberAt(text, path) : undefined
    },
  }
}

function createEventReader(path: readonly string[]): CostReader {
  let units: number | undefined
  let line = ''
  /** Nothing of the line has arrived. A line that is too long is not kept, but does not count as blank either. */
  let isBlank = true
  let data = ''
  /** A line feed that comes next belongs to the line that has just ended. */
  let endedByReturn = false
  const mention = `"${path.at(-1) ?? ''}"`

  function endLine(): void {
    if (isBlank) {
      if (data.length <= LONGEST_TEXT && data.includes(mention)) units = jsonNumberAt(data, path) ?? units
      data = ''
    } else if (line.startsWith('data:')) data += (data === '' ? '' : '\n') + line.slice('data:'.length)
    line = ''
    isBlank = true
  }

  return {
    push(chunk) {
      const text = chunk.toString('latin1')
      let start = endedByReturn && text.startsWith('\n') ? 1 : 0
      if (text !== '') endedByReturn = text.endsWith('\r')
      for (const { 0: end, index } of text.matchAll(/\r\n|\n|\r/g)) {
        if (index < start) continue
        append(text.slice(start, index))
        endLine()
        start = index + end.length
      }
      append(text.slice(start))
    },
    // What stands behind the last blank line is an event that was cut off (HTML, server-sent events).
    get units() {
      return units
    },
  }

  function append(piece: string): void {
    if (piece !== '') isBlank = false
    if (line.length + data.length <= LONGEST_TEXT) line += piece
  }
}

function fieldOf(fields: readonly string[], name: string): string | undefined {
  const place = fields.findIndex((field, i) => i % 2 === 0 && field === name)
  return place === -1 ? undefined : fields[place + 1]
}
