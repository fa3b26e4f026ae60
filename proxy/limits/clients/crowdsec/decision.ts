/** A ban by CrowdSec. `value`: an address, or a network as a CIDR. `leftMs`: the time until it ends; 0 or less if it has ended. */
export type Decision = { readonly value: string; readonly leftMs: number }

/** The fields of the local API's decisions that are used here. */
type Sent = {
  readonly type?: unknown
  readonly scope?: unknown
  readonly value?: unknown
  readonly duration?: unknown
}

const scopes = new Set(['ip', 'range'])

/** @returns undefined for a decision that is not a ban of an address or a network, or cannot be read */
export function readDecision(sent: unknown): Decision | undefined {
  if (typeof sent !== 'object' || sent === null) return undefined
  const { type, scope, value, duration } = sent as Sent
  if (typeof type !== 'string' || type.toLowerCase() !== 'ban') return undefined
  if (typeof scope !== 'string' || !scopes.has(scope.toLowerCase())) return undefined
  const leftMs = typeof duration === 'string' ? readDuration(duration) : undefined
  if (typeof value !== 'string' || leftMs === undefined) return undefined
  return { value, leftMs }
}

const part = /(\d+(?:\.\d+)?)(h|m(?!s)|s|ms|us|µs|ns)/gy
const unitsMs: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  ns: 1e-6,
}

/**
 * Reads a duration as Go writes it, such as `3h59m57.6s` or `-4s`.
 *
 * @returns milliseconds
 * @internal exported for its test
 */
export function readDuration(text: string): number | undefined {
  const isNegative = text.startsWith('-')
  const unsigned = isNegative ? text.slice(1) : text
  if (unsigned === '0') return 0
  let ms = 0
  let end = 0
  for (const [whole, number, unit = ''] of unsigned.matchAll(part)) {
    ms += Number(number) * (unitsMs[unit] ?? NaN)
    end += whole.length
  }
  if (end === 0 || end !== unsigned.length) return undefined
  return isNegative ? -ms : ms
}
