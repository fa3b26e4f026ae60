import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readTarget } from '../../proxy/request/target/target.ts'
import { createPrefixStripper } from '../../proxy/limits/rules/strip-prefix.ts'
import { pathReaders } from '../support/http/path-readers.ts'
import { runs } from '../support/random/runs.ts'

/**
 * A rule limits /v1/login, and the route for /v1/* strips the prefix. Whatever a client sends, every backend's reading of the rest must,
 * with the prefix in front, be one of the rules' readings of the whole path.
 */
const pieces = fc
  .array(
    fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom('a', 'login', '/', '/', '/v1/', 'LOGIN') },
      { weight: 3, arbitrary: fc.constantFrom('%2f', '%2F', ';', '%3b', '%20', '%0a', '%25', '%3f', '%23') },
      { weight: 1, arbitrary: fc.constantFrom('..', '.', '%2E%2e', '/..;/', 'V1', '%76', 'http:') },
    ),
    { minLength: 1, maxLength: 8 },
  )
  .map((parts) => parts.join(''))
const paths = fc.oneof(
  { weight: 8, arbitrary: pieces.map((rest) => `/v1/${rest}`) },
  { weight: 1, arbitrary: pieces.map((rest) => `/v1${rest}`) },
  { weight: 1, arbitrary: pieces.map((rest) => `/${rest}`) },
)

const strip = createPrefixStripper(['/v1/*'])
const loose = (path: string): string => {
  const names = path.toLowerCase().replaceAll('%3b', ';').replaceAll('%25', '%').split('/')
  return names
    .map((name) => name.replace(/^[\0- \x7f]+|[\0- \x7f.]+$/g, '') || name.trim())
    .filter((name) => name !== '')
    .join('/')
}

test.each(Object.entries(pathReaders))(
  'rules have read, in the whole path, every reading of the rest by %s',
  (_, reader) => {
    const tried = runs(5000)
    let accepted = 0
    fc.assert(
      fc.property(paths, (raw) => {
        const target = readTarget('GET', raw)
        if (typeof target === 'string' || !/^\/v1(\/|$)/.test(target.matchPath)) return
        const stripped = strip(target)
        const read = stripped && reader(stripped.target)
        if (read === undefined) return
        accepted++
        const ours = [target.matchPath, ...target.otherMatchPaths].map(loose)
        expect(ours).toContain(loose(`/v1${read}`))
      }),
      { numRuns: tried },
    )
    expect(accepted).toBeGreaterThan(tried / 2)
  },
)
