/** The name of a header that is sent to backends. */
export type HeaderName = {
  /** The name in lower case. */
  readonly name: string
  /** The beginning of its HTTP/1 line: the CRLF before it, the name and `: `. Made once, because every request needs it. */
  readonly line: string
}

/** @param name in lower case */
export function headerName(name: string): HeaderName {
  return { name, line: `\r\n${name}: ` }
}

/** The headers of a message, in order. A name may repeat. */
export class HeaderList {
  readonly names: HeaderName[] = []
  readonly values: string[] = []

  /** The length of all names and values. */
  get bytes(): number {
    let bytes = 0
    for (const { name } of this.names) bytes += name.length
    for (const value of this.values) bytes += value.length
    return bytes
  }

  add(name: HeaderName, value: string): void {
    this.names.push(name)
    this.values.push(value)
  }

  addAll(others: HeaderList): void {
    this.names.push(...others.names)
    this.values.push(...others.values)
  }

  has(name: string): boolean {
    return this.names.some((other) => other.name === name)
  }
}

/**
 * @param fields name, value, name, value… with names in lower case
 * @param before headers to begin with
 */
export function headerListOf(fields: readonly string[], before = noHeaders): HeaderList {
  const list = new HeaderList()
  list.addAll(before)
  for (let i = 0; i < fields.length; i += 2) list.add(headerName(fields[i] ?? ''), fields[i + 1] ?? '')
  return list
}

const noHeaders = new HeaderList()
