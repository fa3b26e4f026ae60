import type { RoutePattern } from '../policy.ts'

/**
 * Whether the excepted patterns take out every request of a pattern, so that it counts nothing: `/a/*` covers `/a` and
 * what is below it, GET covers HEAD. Each method may be excepted by another pattern; paths that only several of them
 * cover together are not looked for.
 */
export function isExcluded(pattern: RoutePattern, except: readonly RoutePattern[]): boolean {
  const covering = except.filter(({ path }) => coversPath(segmentsOf(path), segmentsOf(pattern.path)))
  if (covering.some(({ methods }) => methods.length === 0)) return true
  const excepted = new Set(covering.flatMap(({ methods }) => methods))
  if (excepted.has('GET')) excepted.add('HEAD')
  return pattern.methods.length > 0 && pattern.methods.every((method) => excepted.has(method))
}

function segmentsOf(path: string): string[] {
  return path
    .toLowerCase()
    .split('/')
    .filter((segment) => segment !== '')
}

function coversPath(wide: readonly string[], narrow: readonly string[]): boolean {
  for (const [index, segment] of wide.entries()) {
    if (segment === '*') return true
    const other = narrow[index]
    const covers = segment.startsWith(':') ? other !== undefined && other !== '*' : segment === other
    if (!covers) return false
  }
  return wide.length === narrow.length
}
