import { hash } from 'node:crypto'
import { withoutBlanksAround } from '../../../http/fields/trim-blanks.ts'
import type { ListEntry } from '../../../policy.ts'
import { canonicalCredentials } from '../../keys/credentials/credentials.ts'
import { possibleSpellings } from '../../keys/credentials/possible-spellings.ts'

/** The entries whose secret a request has, each as a text that `add` has returned. Nearly always empty. */
export type FoundSecrets = ReadonlySet<string>

/** The secrets that a header may stand for, by its lines, as many as there are spellings; undefined if they cannot be told. */
type ReadSecrets = (lines: readonly string[], name: string) => Iterable<string> | undefined

const nothing: FoundSecrets = new Set()

/**
 * The headers with a secret value of all lists, by the SHA-256 of the value. The secrets of a request are found once for all
 * lists, in time that does not depend on how many entries they have: there may be 10,000 lists of a client each, and thousands of
 * spellings of one value.
 *
 * They are looked up in hash tables, whose seed only V8 knows. So the time of a look-up reveals nothing of secrets that are near.
 */
export class SecretHeaders {
  readonly #read: ReadSecrets
  /** By header name, the SHA-256 digests in hex. */
  readonly #digests = new Map<string, Set<string>>()
  /** The result for a request, by its raw headers: several lists ask one after another. */
  readonly #found = new WeakMap<readonly string[], FoundSecrets>()

  constructor(read: ReadSecrets) {
    this.#read = read
  }

  /** Returns the text that is found if a request has the secret, and the one that is found if it cannot be told whether it has. */
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

  /** The lines of the headers that some list names. */
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
 * Returns the value if there is a single line: of several it is unknown which one the backend takes, and an exemption is never a guess.
 */
export function readOnlyLine(lines: readonly string[], name: string): Iterable<string> {
  const [line] = lines
  if (lines.length !== 1 || line === undefined) return []
  return [name === 'authorization' ? canonicalCredentials(line) : withoutBlanksAround(line)]
}

/**
 * Any line counts, and whatever a backend may read in it or in all of them together: a client cannot hide credentials by sending
 * other headers next to them, nor by a spelling that only a lenient backend takes.
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
