/** The parts of a verified token that conditions need. Times are milliseconds of the wall clock. */
export type ClaimDetails = {
  /** By claim name, its values as text: a string, a number, a boolean, or each of these in a list. */
  readonly values: ReadonlyMap<string, readonly string[]>
  /** Names of claims with more or longer values than are kept. */
  readonly incomplete: ReadonlySet<string>
  readonly fromMs: number
  readonly untilMs: number
}

/** Maximum values of a claim; ten thousand tokens are remembered. */
const MAX_VALUES = 64
const MAX_VALUE_LENGTH = 256

/** @param payload of a token whose signature is right, whatever the times in it */
export function claimDetails(
  payload: Readonly<Record<string, unknown>>,
  names: readonly string[],
): ClaimDetails {
  const values = new Map<string, readonly string[]>()
  const incomplete = new Set<string>()
  for (const name of names) {
    const claim: unknown = Object.hasOwn(payload, name) ? payload[name] : undefined
    const all = (Array.isArray(claim) ? (claim as unknown[]) : [claim]).flatMap(textOf)
    const kept = all.filter(({ length }) => length <= MAX_VALUE_LENGTH).slice(0, MAX_VALUES)
    if (kept.length < all.length) incomplete.add(name)
    if (all.length > 0) values.set(name, kept)
  }
  return {
    values,
    incomplete,
    fromMs: timeOf(payload['nbf'], -Infinity),
    untilMs: timeOf(payload['exp'], Infinity),
  }
}

/** Empty texts are absent, as they are for keys. */
function textOf(value: unknown): readonly string[] {
  const isText = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
  return isText && value !== '' ? [String(value)] : []
}

/** A time that is not a number is one that no backend can be sure of. */
function timeOf(seconds: unknown, otherwise: number): number {
  if (seconds === undefined) return otherwise
  return typeof seconds === 'number' ? seconds * 1000 : NaN
}
