import { askAll } from './ask.ts'
import { routes } from './routes.ts'
import type { Spelling } from './spelling.ts'
import { isUncounted } from './verdict.ts'

const maxSteps = 200

/** The plainest spelling, found by removing parts, that still reaches a handler through the gateway uncounted. */
export async function shrink(gatewayPort: number, spelling: Spelling): Promise<Spelling> {
  let best = spelling
  for (let step = 0; step < maxSteps; step++) {
    const candidates = simplifications(best)
    const responses = await askAll(gatewayPort, candidates, 5_000)
    const simpler = candidates.find((_, i) => {
      const response = responses[i]
      return response !== undefined && isUncounted(response)
    })
    if (!simpler) break
    best = simpler
  }
  return best
}

function simplifications({ method, target, headers }: Spelling): Spelling[] {
  const withoutHeader = headers.map((_, i) => ({ method, target, headers: headers.toSpliced(i, 1) }))
  const plainMethods = routes.filter((route) => route.method !== method)
  const withMethod =
    headers.length > 0 ? [] : plainMethods.map((route) => ({ method: route.method, target, headers }))
  const targets = new Set<string>()
  for (let at = 0; at < target.length; at++) {
    for (const length of [12, 6, 3, 2, 1]) targets.add(target.slice(0, at) + target.slice(at + length))
    // Replaces an escape of a visible character with that character.
    const hex = /^%([2-7][0-9a-f])/i.exec(target.slice(at))?.[1]
    if (hex !== undefined)
      targets.add(target.slice(0, at) + String.fromCharCode(Number.parseInt(hex, 16)) + target.slice(at + 3))
    for (const letter of [target.charAt(at).toLowerCase(), 'x'])
      targets.add(target.slice(0, at) + letter + target.slice(at + 1))
  }
  targets.delete(target)
  targets.delete('')
  return [
    ...withoutHeader,
    ...withMethod,
    ...Array.from(targets, (shorter) => ({ method, target: shorter, headers })),
  ]
}
