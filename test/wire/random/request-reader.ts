import { patternFault, uploadId } from './pattern.ts'

export type RequestHead = {
  readonly method: string
  readonly target: string
  /** Names in lower case; a duplicate name is a fault. */
  readonly headers: Readonly<Record<string, string>>
}

export type RequestHooks = {
  /** Returns the id whose pattern the content must have. */
  onHead(head: RequestHead): number
  onContent(bytes: number): void
  onEnd(): void
  onFault(text: string): void
}

type State = 'head' | 'length' | 'chunk-size' | 'chunk' | 'chunk-end' | 'last' | 'faulty'

const nothing = Buffer.alloc(0)

/** Reads the gateway's requests on one connection, as strictly as well-formed requests allow. */
export class RequestReader {
  readonly #hooks: RequestHooks
  #state: State = 'head'
  #held: Buffer = nothing
  #left = 0
  #id = 0
  #contentBytes = 0

  constructor(hooks: RequestHooks) {
    this.#hooks = hooks
  }

  push(input: Buffer): void {
    let rest = input
    while (rest.length > 0 && this.#state !== 'faulty') {
      if (this.#state === 'length' || this.#state === 'chunk') rest = this.#takeContent(rest)
      else rest = this.#takeText(rest, this.#state === 'head' ? '\r\n\r\n' : '\r\n')
    }
  }

  #takeContent(chunk: Buffer): Buffer {
    const piece = chunk.subarray(0, this.#left)
    const fault = patternFault(uploadId(this.#id), this.#contentBytes, piece)
    if (fault !== undefined) this.#fail(`the request's content: ${fault}`)
    this.#contentBytes += piece.length
    this.#left -= piece.length
    this.#hooks.onContent(piece.length)
    if (this.#left === 0 && this.#state === 'length') this.#end()
    else if (this.#left === 0) this.#state = 'chunk-end'
    return chunk.subarray(piece.length)
  }

  #takeText(chunk: Buffer, delimiter: string): Buffer {
    const bytes = this.#held.length > 0 ? Buffer.concat([this.#held, chunk]) : chunk
    const end = bytes.indexOf(delimiter)
    if (end === -1) {
      this.#held = bytes
      return nothing
    }
    this.#held = nothing
    const text = bytes.toString('latin1', 0, end)
    if (this.#state === 'head') this.#readHead(text)
    else this.#readLine(text)
    return bytes.subarray(end + delimiter.length)
  }

  #readHead(text: string): void {
    const [requestLine = '', ...lines] = text.split('\r\n')
    const [, method, target] = /^([A-Z]+) (\S+) HTTP\/1\.1$/.exec(requestLine) ?? []
    if (method === undefined || target === undefined)
      return this.#fail(`not a request line: ${JSON.stringify(requestLine.slice(0, 200))}`)
    const headers: Record<string, string> = {}
    for (const line of lines) {
      const [, name = '', value = ''] = /^([a-z0-9-]+): (.*)$/.exec(line) ?? []
      if (name === '' || name in headers) return this.#fail(`a header line ${JSON.stringify(line)}`)
      headers[name] = value
    }
    const { 'content-length': length, 'transfer-encoding': coding } = headers
    if (length !== undefined && coding !== undefined) return this.#fail('a length and a coding')
    this.#contentBytes = 0
    this.#id = this.#hooks.onHead({ method, target, headers })
    this.#left = Number(length ?? 0)
    if (coding !== undefined) this.#state = 'chunk-size'
    else if (this.#left > 0) this.#state = 'length'
    else this.#end()
  }

  #readLine(text: string): void {
    if (this.#state === 'last' && text === '') this.#end()
    else if (this.#state === 'chunk-end' && text === '') this.#state = 'chunk-size'
    else if (this.#state === 'chunk-size' && /^[0-9a-f]{1,8}$/.test(text)) {
      this.#left = Number.parseInt(text, 16)
      this.#state = this.#left === 0 ? 'last' : 'chunk'
    } else this.#fail(`in a chunked request: ${JSON.stringify(text)}`)
  }

  #end(): void {
    this.#state = 'head'
    this.#hooks.onEnd()
  }

  #fail(text: string): void {
    this.#state = 'faulty'
    this.#hooks.onFault(text)
  }
}
