import { decodedText } from './lenient-text.ts'

/** Whether a backend may read the sent name as the wanted one. */
export type NameTest = (sent: string) => boolean

/**
 * Compares the names of query parameters and cookies as lenient backends do: letter case is ignored (ASP.NET), escapes are decoded,
 * blanks and dots become `_` (PHP), and `user[x]`, a member of `user`, has the name `user`. So have `[user]` (qs), `]user`, `user]` and
 * `[[user]]` (Rack 2).
 *
 * @param name as the limits table has it
 */
export function nameTest(name: string): NameTest {
  const known = tests.get(name)
  if (known) return known
  const wanted = mangled(decodedText(name, false))
  // Nothing that a byte is read as becomes more than one ASCII character.
  const shortest = /^[\0-\x7f]*$/.test(wanted) ? wanted.length : 0
  const test: NameTest = (sent) => {
    if (sent.length < shortest) return false
    const text = decodedText(sent, false)
    return mangled(text) === wanted || mangled(firstPiece.exec(text)?.[1] ?? '') === wanted
  }
  // The names of the limits table, of which there are few.
  tests.set(name, test)
  return test
}

const tests = new Map<string, NameTest>()
const firstPiece = /^[[\]]*([^[\]]+)/

function mangled(name: string): string {
  return name.replace(/[ .[\]]/g, '_')
}
