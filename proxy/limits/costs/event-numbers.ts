import { EventTokens } from './estimate.ts'
import { JsonNumbers } from './json-numbers.ts'

/**
 * Maximum bytes of the events that end a stream, such as `[DONE]` and `{"type":"message_stop"}`; many clients disconnect there. Events with
 * text are larger.
 */
const MAX_END_BYTES = 64

/** States of the parser within a line: where the next byte belongs. */
const inName = 0
const inData = 1
const inOther = 2

/**
 * Finds numbers in the JSON of server-sent events of any length as they arrive in pieces. For each path, the last event with a number
 * counts. The text of an event is in its `data` lines (HTML Living Standard, section 9.2.6).
 */
export class EventNumbers {
  readonly #paths: readonly string[]
  readonly #event: JsonNumbers
  readonly #latest = new Map<string, number>()
  readonly #tokens: EventTokens | undefined
  #place: typeof inName | typeof inData | typeof inOther = inName
  /** The number of bytes at the start of the line that match `data`. */
  #matched = 0
  #isBlank = true
  /** A line feed as the next byte belongs to the line that has just ended. */
  #endedByReturn = false
  #hasData = false
  /** Bytes of data since the last event that had a number, and whether an event has ended since. */
  #bytesSince = 0
  #hasEventSince = false

  /** @param isMeasured whether to estimate tokens, too */
  constructor(paths: readonly string[], isMeasured: boolean) {
    this.#tokens = isMeasured ? new EventTokens() : undefined
    this.#paths = paths
    this.#event = new JsonNumbers(paths)
  }

  /** Whether the cost read so far is final even if the stream is truncated here, because the event that ends a stream has followed. */
  get isCostFinal(): boolean {
    return this.#latest.size > 0 && this.#hasEventSince && this.#bytesSince <= MAX_END_BYTES
  }

  valueAt(path: string): number | undefined {
    return this.#latest.get(path)
  }

  /** The estimated number of tokens. */
  get tokens(): number {
    return this.#tokens?.tokens ?? 0
  }

  push(bytes: Buffer): void {
    let at = 0
    while (at < bytes.length) {
      const code = bytes[at]
      if (code === lineFeed && this.#endedByReturn) at++
      else if (code === lineFeed || code === carriageReturn) {
        this.#endLine()
        at++
      } else if (this.#place === inName) at = this.#takeName(bytes, at)
      else at = this.#takeRest(bytes, at)
      this.#endedByReturn = code === carriageReturn
    }
  }

  #takeName(bytes: Buffer, at: number): number {
    this.#isBlank = false
    const code = bytes[at]
    if (this.#matched === dataName.length) this.#place = code === colon ? inData : inOther
    else if (code === dataName[this.#matched]) this.#matched++
    // A byte order mark may stand before the first line.
    else if (this.#matched > 0 || code === undefined || code < 0x80) this.#place = inOther
    if (this.#place === inData) this.#beginData()
    return at + 1
  }

  #beginData(): void {
    // The lines of one event are joined by line feeds.
    if (this.#hasData) this.#event.push(joint)
    this.#hasData = true
  }

  #takeRest(bytes: Buffer, start: number): number {
    let end = start
    while (end < bytes.length && bytes[end] !== lineFeed && bytes[end] !== carriageReturn) end++
    if (this.#place === inData) {
      this.#tokens?.push(bytes, start, end)
      this.#bytesSince += end - start
      this.#event.push(bytes, start, end)
    }
    return end
  }

  #endLine(): void {
    if (this.#isBlank) this.#endEvent()
    this.#place = inName
    this.#matched = 0
    this.#isBlank = true
  }

  #endEvent(): void {
    if (!this.#hasData) return
    this.#hasEventSince = true
    if (this.#event.isWhole)
      for (const path of this.#paths) {
        const value = this.#event.valueAt(path)
        if (value === undefined) continue
        this.#latest.set(path, value)
        this.#bytesSince = 0
        this.#hasEventSince = false
      }
    this.#tokens?.endEvent()
    this.#event.reset()
    this.#hasData = false
  }
}

const lineFeed = 0x0a
const carriageReturn = 0x0d
const colon = 0x3a
const dataName = Buffer.from('data')
const joint = Buffer.from('\n')
