import { hash } from 'node:crypto'
import { withoutBlanksAround } from '../../../http/fields/trim-blanks.ts'
import type { ListEntry } from '../../../policy.ts'
import { canonicalCredentials } from '../../keys/credentials/credentials.ts'
import { possibleSpellings } from '../../keys/credentials/possible-spellings.ts'

/** The entries whose secret a request has, as texts that `add` returned. Nearly always empty. */
export type FoundSecrets = ReadonlySet<string>

/** Reads the secrets that a header may stand for, one per spelling, from its lines; undefined if they cannot be determined. */
type ReadSecrets = (lines: readonly string[], name: string) => Iterable<string> | undefined

const nothing: FoundSecrets = new Set()

/**
 * The headers with a secret value of all lists, by the SHA-256 of the value. The secrets of a request are found once for all lists, in a
 * time that does not depend on the number of entries: there may be 10,000 lists with one client each, and thousands of spellings of one
 * value.
 *
 * Digests are looked up in hash tables with a seed that only V8 knows, so the time of a lookup reveals nothing about similar secrets.
 */
export class SecretHeaders {
  readonly #read: ReadSecrets
  /** The SHA-256 digests in hex, by header name. */
  readonly #digests = new Map<string, Set<string>>()
  /** The result for a request, by its raw headers, because several lists ask one after another. */
  readonly #found = new WeakMap<readonly string[], FoundSecrets>()

  constructor(read: ReadSecrets) {
    this.#read = read
  }

  /** Returns two texts: `find` returns the first one if a request has the secret, and the second one if that cannot be determined. */
  add({ name, sha256 }: ListEntry & { readonly kind: 'header' }): readonly string[] {
    const digest = sha256.toLowerCase()
    const digests = this.#digests.get(name) ?? new Set<string>()
    this.#digests.set(name, digests.add(digest))
    return [idOf(name, digest), unclearIn(name)]
  }

  find(rawHeaders: readonly string[]): FoundSecrets {
    if (this.#digests.size === 0) return nothing
    const before = this.#found.get(rawHeaders)
    if (before) return before
    const lines = this.#linesOf(rawHeaders)
    if (lines.size === 0) return nothing
    const found = new Set<string>()
    for (const [name, values] of lines) this.#findIn(values, name, found)
    this.#found.set(rawHeaders, found.size === 0 ? nothing : found)
    return found
  }

  #findIn(lines: readonly string[], name: string, found: Set<string>): void {
    const digests = this.#digests.get(name) ?? nothing
    const secrets = this.#read(lines, name)
    if (secrets === undefined) found.add(unclearIn(name))
    for (const secret of secrets ?? []) {
      const digest = hash('sha256', Buffer.from(secret, 'latin1'), 'hex')
      if (digests.has(digest)) found.add(idOf(name, digest))
    }
  }

  /** The lines of the headers that a list names. */
  #linesOf(rawHeaders: readonly string[]): ReadonlyMap<string, readonly string[]> {
    const lines = new Map<string, string[]>()
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i] ?? ''
      if (!this.#digests.has(name)) continue
      const before = lines.get(name)
      const value = rawHeaders[i + 1] ?? ''
      if (before) before.push(value)
      else lines.set(name, [value])
    }
    return lines
  }
}

/**
 * Returns the value if there is a single line. With several lines, it is unknown which one the backend uses, and exemptions are never
 * guessed.
 */
export function readOnlyLine(lines: readonly string[], name: string): Iterable<string> {
  const [line] = lines
  if (lines.length !== 1 || line === undefined) return []
  return [name === 'authorization' ? canonicalCredentials(line) : withoutBlanksAround(line)]
}

/**
 * Returns every value that a backend may read from any line, or from all lines together. A client cannot hide credentials by sending other
 * headers next to them, or by a spelling that only a lenient backend accepts.
 */
export function readAnyLine(lines: readonly string[], name: string): Iterable<string> | undefined {
  return name === 'authorization' ? possibleSpellings(lines) : lines.map(withoutBlanksAround)
}

function idOf(name: string, digest: string): string {
  return `${name} ${digest}`
}

function unclearIn(name: string): string {
  return idOf(name, 'unclear')
}
