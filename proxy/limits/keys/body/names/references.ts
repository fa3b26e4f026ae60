import type { SinglePart } from '../../../../policy/partition.ts'
import { foldedLetters } from './folded-letters.ts'

type BodyPart = SinglePart & { readonly kind: 'body' }

/** Where a body names places that superjson replaces by other ones, such as `{ "x": ["user.email"] }`. */
export type References = {
  readonly field: BodyPart
  /** Matches a place whose replacement may change the value of the part. */
  readonly pattern: RegExp
}

/** The member that superjson reads, and the one with its references: as clients of tRPC send them, and those of Blitz. */
const fields: ReadonlyMap<string, BodyPart> = new Map(
  [
    ['json', 'meta.referentialEqualities'],
    ['params', 'meta.params.referentialEqualities'],
  ].map(([of = '', name = '']) => [of, { kind: 'body', name, path: name.split('.') }]),
)

const known = new WeakMap<BodyPart, References>()

/** Returns the references that may concern a part; undefined if superjson does not read the part. */
export function referencesTo(part: BodyPart): References | undefined {
  const [first = '', ...names] = part.path.map(foldedLetters)
  const field = fields.get(first)
  if (!field || names.length === 0) return undefined
  let references = known.get(part)
  if (!references) {
    // Linear: a name begins at a dot or the start only, and ends before the next dot.
    const spellings = names.map((name) => Array.from(name).join(gap)).join('|')
    references = { field, pattern: new RegExp(`(?:^|\\.)${gap}(?:${spellings})${gap}(?:\\.|$)`, 'iu') }
    known.set(part, references)
  }
  return references
}

/** Characters that do not matter in names. */
const gap = '[^\\p{L}\\p{N}.]*'
