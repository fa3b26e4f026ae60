/** One request as it arrived at the recording backend. Everything is Latin-1 text, one character a byte. */
export type RecordedRequest = {
  /** From the method to the last field line, without the empty line. */
  readonly head: string
  readonly method: string
  readonly target: string
  /** Name in lower case and value, in the order of arrival. */
  readonly fields: readonly (readonly [name: string, value: string])[]
  /** The content without its chunked framing. */
  body: string
  /** The bytes of the framing, and after a 101 the bytes of the tunnel, as sent. */
  rest: string
  complete: boolean
}

type Framing = { readonly kind: 'length'; left: number } | { readonly kind: 'chunked' }

/**
 * Reads requests as the most careless backend would. A line ends at any LF. Blanks around a field's name are ignored. `Transfer-Encoding`
 * is chunked if it contains the word, and takes precedence over a length. The last of several lengths counts. Digits before nonsense are a
 * number. Bytes that cannot be read at all count as a request of their own. So if the gateway lets something ambiguous through, this reader
 * takes the worse reading.
 */
export class LenientRequestReader {
  readonly requests: RecordedRequest[] = []
  #text = ''
  #current: { readonly request: RecordedRequest; readonly framing: Framing } | undefined
  #tunnel: RecordedRequest | undefined

  /** @returns the requests whose heads these bytes completed, and the requests that are complete now */
  push(bytes: string): { begun: RecordedRequest[]; completed: RecordedRequest[] } {
    const begun: RecordedRequest[] = []
    const completed: RecordedRequest[] = []
    this.#text += bytes
    for (;;) {
      if (this.#tunnel) {
        this.#tunnel.rest += this.#text
        this.#text = ''
        return { begun, completed }
      }
      if (!this.#current) {
        const request = this.#readHead()
        if (!request) return { begun, completed }
        this.requests.push(request)
        begun.push(request)
        this.#current = { request, framing: framingOf(request) }
      }
      if (!this.#readBody(this.#current.request, this.#current.framing)) return { begun, completed }
      this.#current.request.complete = true
      completed.push(this.#current.request)
      this.#current = undefined
    }
  }

  /** Bytes that are not a complete request yet. */
  get leftOver(): string {
    return this.#text
  }

  /** After a 101: the following bytes are not HTTP. */
  beginTunnel(request: RecordedRequest): void {
    this.#tunnel = request
    this.push('')
  }

  #readHead(): RecordedRequest | undefined {
    this.#text = this.#text.replace(/^[\r\n]+/, '')
    const end = /\r?\n\r?\n/.exec(this.#text)
    if (!end) return undefined
    const head = this.#text.slice(0, end.index)
    this.#text = this.#text.slice(end.index + end[0].length)
    const [requestLine = '', ...fieldLines] = head.split(/\r?\n/)
    const [method = '', target = ''] = requestLine.split(' ')
    const fields = fieldLines.map((line) => {
      const [name = '', ...value] = line.split(':')
      return [name.trim().toLowerCase(), value.join(':').trim()] as const
    })
    return { head, method, target, fields, body: '', rest: '', complete: false }
  }

  /** Returns whether the body is complete. */
  #readBody(request: RecordedRequest, framing: Framing): boolean {
    if (framing.kind === 'length') {
      const part = this.#text.slice(0, framing.left)
      request.body += part
      framing.left -= part.length
      this.#text = this.#text.slice(part.length)
      return framing.left === 0
    }
    for (;;) {
      const line = /^([^\n]*)\n/.exec(this.#text)
      if (!line) return false
      const size = Number.parseInt(line[1] ?? '', 16) || 0
      const dataStart = line[0].length
      const dataEnd = dataStart + size
      const end = (size === 0 ? /^(?:[^\n]+\n)*?\r?\n/ : /^\r?\n/).exec(this.#text.slice(dataEnd))
      if (!end) return false
      request.body += this.#text.slice(dataStart, dataEnd)
      request.rest += this.#text.slice(0, dataStart) + end[0]
      this.#text = this.#text.slice(dataEnd + end[0].length)
      if (size === 0) return true
    }
  }
}

/** The values of a field, one for each line of it. */
export function valuesOf({ fields }: RecordedRequest, name: string): string[] {
  return fields.filter(([field]) => field === name).map(([, value]) => value)
}

function framingOf(request: RecordedRequest): Framing {
  if (valuesOf(request, 'transfer-encoding').some((value) => /chunked/i.test(value)))
    return { kind: 'chunked' }
  const length = Number.parseInt(valuesOf(request, 'content-length').at(-1) ?? '0', 10)
  return { kind: 'length', left: Number.isNaN(length) ? 0 : length }
}

const requestLine = /^[A-Z-]+ (?:\/[\x21-\x7e]*) HTTP\/1\.1$/
const fieldLine =
  /^[!#$%&'*+\-.^_`|~0-9a-z]+: (?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/
const chunkFraming = /^(?:[1-9a-f][0-9a-f]*\r\n\r\n)*0\r\n\r\n$/

/**
 * Returns everything in a recorded request that a stricter or laxer reader could misread. The gateway writes each request in one form only,
 * so any deviation from that form is a fault.
 */
export function faultsOf(request: RecordedRequest): string[] {
  const faults: string[] = []
  const [first = '', ...lines] = request.head.split('\r\n')
  if (!requestLine.test(first)) faults.push(`request line ${JSON.stringify(first)}`)
  for (const line of lines) if (!fieldLine.test(line)) faults.push(`field line ${JSON.stringify(line)}`)
  const lengths = valuesOf(request, 'content-length')
  const codings = valuesOf(request, 'transfer-encoding')
  if (valuesOf(request, 'host').length !== 1) faults.push('not one Host')
  if (lengths.length + codings.length > 1) faults.push('more than one framing')
  if (lengths[0] !== undefined && !/^(?:0|[1-9][0-9]*)$/.test(lengths[0])) faults.push(`length ${lengths[0]}`)
  if (codings[0] !== undefined && codings[0] !== 'chunked') faults.push(`coding ${codings[0]}`)
  if (codings[0] !== undefined && request.complete && !chunkFraming.test(request.rest))
    faults.push(`chunks ${JSON.stringify(request.rest)}`)
  for (const name of ['keep-alive', 'proxy-connection', 'te', 'trailer', 'expect', 'forwarded'])
    if (valuesOf(request, name).length > 0) faults.push(`field ${name}`)
  const connection = valuesOf(request, 'connection')
  if (connection.length > 0 && connection.join() !== 'upgrade')
    faults.push(`connection: ${connection.join()}`)
  return faults
}
