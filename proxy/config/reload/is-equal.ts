import { isDeepStrictEqual } from 'node:util'
import type { Steps } from '../../../shared/steps.ts'

/** Does what `isDeepStrictEqual` does in steps, for lists and plain objects of any size and depth. Compares any other value in one step. */
export function* isEqual(one: unknown, other: unknown): Steps<boolean> {
  if (Object.is(one, other)) return true
  yield
  if (Array.isArray(one)) return Array.isArray(other) && (yield* hasEqualItems(one, other))
  if (!isPlainObject(one) || !isPlainObject(other)) return isDeepStrictEqual(one, other)
  const names = Object.keys(one)
  if (names.length !== Object.keys(other).length) return false
  for (const name of names)
    if (!Object.hasOwn(other, name) || !(yield* isEqual(one[name], other[name]))) return false
  return true
}

function* hasEqualItems(some: readonly unknown[], others: readonly unknown[]): Steps<boolean> {
  if (some.length !== others.length) return false
  for (const [index, item] of some.entries()) if (!(yield* isEqual(item, others[index]))) return false
  return true
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}
