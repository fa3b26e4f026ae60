/**
 * The number at a path of member names in a JSON text.
 *
 * @returns rounded up to a whole number; undefined where the text is no JSON, or there is no number from 0 at the path
 */
export function jsonNumberAt(text: string, path: readonly string[]): number | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return typeof value === 'number' && value >= 0
    ? Math.min(Math.ceil(value), Number.MAX_SAFE_INTEGER)
    : undefined
}
