import type { SinglePart } from '../../../../policy/partition.ts'
import { foldedLetters } from './folded-letters.ts'

type BodyPart = SinglePart & { readonly kind: 'body' }

/** Where a body names places that superjson or oRPC replaces by other ones, such as `{ "x": ["user.email"] }`. */
export type References = {
  readonly fields: readonly BodyPart[]
  /** Matches a place whose replacement may change the value of the part. */
  readonly pattern: RegExp
}

/** The member with the input, and those that name places in it: as superjson reads them in calls of tRPC and Blitz, and oRPC in forms. */
const fieldsOf: ReadonlyMap<string, readonly BodyPart[]> = new Map([
  ['json', [bodyPart('meta.referentialEqualities'), bodyPart('maps')]],
  ['params', [bodyPart('meta.params.referentialEqualities')]],
])

function bodyPart(name: string): BodyPart {
  return { kind: 'body', name, path: name.split('.') }
}

const known = new WeakMap<BodyPart, References>()

/** Returns the references that may concern a part; undefined if neither library reads the part. */
export function referencesTo(part: BodyPart): References | undefined {
  const [first = '', ...names] = part.path.map(foldedLetters)
  const fields = fieldsOf.get(first)
  if (!fields || names.length === 0) return undefined
  let references = known.get(part)
  if (!references) {
    // Linear: a name begins at a dot or the start only, and ends before the next dot.
    const spellings = names.map((name) => Array.from(name).join(gap)).join('|')
    references = { fields, pattern: new RegExp(`(?:^|\\.)${gap}(?:${spellings})${gap}(?:\\.|$)`, 'iu') }
    known.set(part, references)
  }
  return references
}

/** Characters that do not matter in names. */
const gap = '[^\\p{L}\\p{N}.]*'
