/** The parts of a verified token that conditions need. Times are milliseconds of the wall clock. */
export type ClaimDetails = {
  /** The values as text, by claim name: of a string, a number, a boolean, or each of these in a list. */
  readonly values: ReadonlyMap<string, readonly string[]>
  /** Names of claims with values that were not kept, because they are too many or too long. */
  readonly incomplete: ReadonlySet<string>
  readonly fromMs: number
  readonly untilMs: number
}

/** Maximum values of a claim, because ten thousand tokens are remembered. */
const MAX_VALUES = 64
const MAX_VALUE_LENGTH = 256

/** @param payload the payload of a token with a valid signature; the token may be expired */
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

/** Empty texts count as absent, as in keys. */
function textOf(value: unknown): readonly string[] {
  const isText = isTextOrNumber(value) || typeof value === 'boolean'
  return isText && value !== '' ? [String(value)] : []
}

/** Whether a claim is one that rules count by. Large whole numbers are BigInt. */
export function isTextOrNumber(value: unknown): value is string | number | bigint {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint'
}

/** NaN if the time is not a number, so that the token is never certainly valid. */
function timeOf(seconds: unknown, otherwise: number): number {
  if (seconds === undefined) return otherwise
  return typeof seconds === 'number' || typeof seconds === 'bigint' ? Number(seconds) * 1000 : NaN
}
