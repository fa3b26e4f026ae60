import { readTarget } from '../../../proxy/request/target/target.ts'
import { pathReaders } from '../../support/http/path-readers.ts'
import { fail } from '../pieces.ts'

/** A request target, in Latin-1. It must be refused, or be safe on a request line, stable, and matched under every reading of a backend. */
export function fuzz(bytes: Buffer): void {
  const raw = bytes.toString('latin1')
  for (const method of ['GET', 'POST']) {
    const target = readTarget(method, raw)
    if (typeof target === 'string') continue
    const { forwardTarget, matchPath, otherMatchPaths, path } = target
    if (!/^(?:\/[\x21-\x7e\x80-\xff]*|\*)$/.test(forwardTarget))
      fail('not safe on a request line', { raw, forwardTarget })
    const again = readTarget(method, forwardTarget)
    if (typeof again === 'string' || again.forwardTarget !== forwardTarget)
      fail('not stable', { raw, forwardTarget, again })
    const readings = [matchPath, ...otherMatchPaths]
    for (const [name, read] of Object.entries(pathReaders)) {
      if (loose(read(path)) === '/login' && !readings.includes('/login'))
        fail(`${name} reads /login`, { raw, readings })
    }
  }
}

function loose(path: string | undefined): string | undefined {
  return path?.toLowerCase().replace(/%(?:25)+/g, '%')
}
