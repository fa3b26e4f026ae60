import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalizeTarget, type Target } from '../../proxy/request/target.ts'
import { pathReaders } from '../support/http/path-readers.ts'
import { runs } from '../support/random/runs.ts'

/** Targets of the pieces that matter, in any order. */
const pieces = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('/', '/', '/', '..', '.', 'a', 'b', 'login') },
      { weight: 4, arbitrary: fc.constantFrom('%2f', '%2F', ';', '%3b', '%3B', '%2e', '%2E%2e', 'x') },
      {
        weight: 2,
        arbitrary: fc.constantFrom('//', 'A', 'LOGIN', '%6c', '%4C', '%20', '%0a', '%25', '~', '%3f', '%23'),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom('%252f', '%c3%a9', '%C3%89', '%ff', '%7f', ':', '@', '[', '?'),
      },
    ),
    { maxLength: 14 },
  )
  .map((parts) => `/${parts.join('')}`)
const spoilt = fc
  .tuple(pieces, fc.constantFrom('\\', '%5c', '%', '%0', '#', ' ', '%00', '\0', '://', '\xe9', ''), pieces)
  .map((parts) => parts.join(''))
const bytes = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) })
const anyTarget = fc.oneof(
  pieces,
  spoilt,
  fc.string(),
  bytes,
  fc.webUrl({ withQueryParameters: true, withFragments: true }),
  pieces.map((path) => `http://host${path}`),
)
const many = { numRuns: runs(3000) }

function accepted(raw: string): Target | undefined {
  const target = canonicalizeTarget('GET', raw)
  return typeof target === 'string' ? undefined : target
}

function readings(raw: string): string[] {
  const target = accepted(raw)
  if (!target) throw new Error(`${raw} was refused`)
  return [target.matchPath, ...target.otherMatchPaths]
}

describe('a target', () => {
  test('is refused with a reason, or is safe to put on a request line, and never throws', () => {
    fc.assert(
      fc.property(anyTarget, fc.constantFrom('GET', 'POST', 'OPTIONS', 'CONNECT', ''), (raw, method) => {
        const target = canonicalizeTarget(method, raw)
        if (typeof target === 'string') return target.length > 0
        return /^(?:\/[\x21-\x7e]*|\*)$/.test(target.forwardTarget) && !target.forwardTarget.includes('#')
      }),
      many,
    )
  })

  test('is what a simple implementation of RFC 3986 reads', () => {
    fc.assert(
      fc.property(anyTarget, (raw) => {
        if (!raw.startsWith('/')) return
        const target = canonicalizeTarget('GET', raw)
        if (target === 'the path climbs above the root') return
        expect(typeof target === 'string' ? undefined : target.forwardTarget).toBe(naiveForwardTarget(raw))
      }),
      many,
    )
  })

  test('comes back unchanged when it is made canonical again', () => {
    fc.assert(
      fc.property(anyTarget, (raw) => {
        const target = accepted(raw)
        if (!target) return
        expect(accepted(target.forwardTarget)).toEqual({ ...target, authority: undefined })
      }),
      many,
    )
  })

  test('has a path without repeated slashes, dot segments, lower-case hex and needless escapes', () => {
    fc.assert(
      fc.property(anyTarget, (raw) => {
        const target = accepted(raw)
        if (!target) return
        const { path, matchPath } = target
        expect(path).not.toMatch(
          /\/\/|\/\.{1,2}(\/|$)|%[0-9A-F]?[a-f]|%(2D|2E|3\d|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])/,
        )
        expect(path).toMatch(/^\/(?:[^%]|%[0-9A-F]{2})*$/)
        expect(matchPath).not.toMatch(/\/\/|\/\.{1,2}(\/|$)|.\/$|%2f|%3b|;|[A-Z]/)
        expect(matchPath).toMatch(/^\//)
      }),
      many,
    )
  })

  test('of an accepted length is read in a bounded time', () => {
    const repeated = fc.constantFrom(
      '/',
      ';',
      ';/',
      '%2f',
      'a%2f',
      '..;/',
      '.',
      '%20',
      '%ff',
      '%41',
      'a/../',
      '. ',
      '%3f',
      '%3b',
    )
    fc.assert(
      fc.property(
        repeated,
        fc.constantFrom('', 'x', ';', '%2f', '%3b', '/', ';%3f', '/%2e%2e%2fx;'),
        (piece, end) => {
          const raw = `/${piece.repeat(16_000 / piece.length)}${end}`
          const start = process.cpuUsage()
          canonicalizeTarget('GET', raw)
          // It takes one millisecond, a quadratic step would take a second.
          expect(process.cpuUsage(start).user).toBeLessThan(200_000)
        },
      ),
      { numRuns: runs(100) },
    )
  })
})

describe('a reading of the path', () => {
  const letters = fc.constantFrom('a', 'b', 'login', 'v1', 'api')
  const base = fc.array(letters, { minLength: 1, maxLength: 4 })

  test.each(Object.entries(pathReaders))('is what %s reads', (_, reader) => {
    fc.assert(
      fc.property(pieces, (raw) => {
        const target = accepted(raw)
        const read = target && reader(target.path)
        if (!target || read === undefined) return
        // Around a name and in letter case the readings are wider than any backend; `;` is no part of a pattern.
        const loose = (path: string): string => {
          const names = path.toLowerCase().replaceAll('%3b', ';').split('/').map(trimmed)
          return names.filter((name) => name !== '').join('/')
        }
        // `%25` stays an escape with us, where a backend has a `%`.
        const withPercent = (path: string): string => path.replaceAll('%25', '%')
        const ours = readings(raw).map((path) => withPercent(loose(path)))
        expect(ours).toContain(withPercent(loose(read)))
      }),
      many,
    )
  })

  test('ends at each delimiter that a router ends the path at', () => {
    const delimiter = fc.constantFrom(';', '%3b', '%3F', '%23', ';a=1;', '/;', ';%2F')
    fc.assert(
      fc.property(base, delimiter, pieces, (names, between, rest) => {
        // What climbs out of the path is refused, or names another path when it is made canonical.
        const raw = `/${names.join('/')}${between}${rest.replaceAll(/\.|%2e|:/gi, '')}`
        expect(readings(raw)).toContain(`/${names.join('/')}`)
      }),
      many,
    )
  })

  test('of a plain variant is that of the path, and so is what is forwarded', () => {
    const separator = fc.constantFrom('/', '//', '/./', '/x/../', '/%2e/', '/x/%2E./', '/x/y/../../')
    const variant = base.chain((names) =>
      fc
        .tuple(
          fc.array(separator, { minLength: names.length, maxLength: names.length }),
          fc.array(fc.boolean(), { minLength: 20, maxLength: 20 }),
        )
        .map(([separators, escaped]) => {
          const spelled = names.map((name) => escapeSome(name, escaped))
          return { names, raw: spelled.map((name, i) => `${separators[i] ?? '/'}${name}`).join('') }
        }),
    )
    fc.assert(
      fc.property(variant, ({ names, raw }) => {
        expect(accepted(raw)).toMatchObject({ path: `/${names.join('/')}`, otherMatchPaths: [] })
      }),
      many,
    )
  })

  test('of a disguised variant is that of the path', () => {
    const separator = fc.constantFrom(
      '/',
      '%2F',
      '%2f',
      '/x;/..;/',
      '%2fx%2f..%2F',
      '/x%2f..;y/',
      '%2f%2F',
      '/;/',
    )
    const end = fc.constantFrom('', '/', '%2f', ';x', ';x=1;y', '%3bx', '%20', '%0a', '.', '/.;', '?', '?x=1')
    const parameter = fc.constantFrom('', '', ';', ';p=1', '%3Bp', '%20', '%09;q')
    const variant = base.chain((names) =>
      fc
        .tuple(
          fc.array(fc.tuple(separator, parameter, fc.boolean()), {
            minLength: names.length,
            maxLength: names.length,
          }),
          end,
        )
        .map(([spellings, tail]) => {
          const spelled = names.map((name, i) => {
            const [between, after, upper] = spellings[i] ?? ['/', '', false]
            return `${between}${upper ? name.toUpperCase() : name}${after}`
          })
          return { names, raw: `/${spelled.join('')}${tail}` }
        }),
    )
    fc.assert(
      fc.property(variant, ({ names, raw }) => {
        expect(readings(raw)[0]).toBe(`/${names.join('/')}`)
      }),
      many,
    )
  })
})

function escapeSome(name: string, escaped: readonly boolean[]): string {
  return Array.from(name, (letter, i) =>
    escaped[i] ? `%${letter.charCodeAt(0).toString(16)}` : letter,
  ).join('')
}

function trimmed(name: string): string {
  const [, middle = ''] = /^[\0- \x7f]*([^]*?)[\0- \x7f]*$/.exec(name) ?? []
  return middle.replace(/(?<=[^\0- \x7f.])[\0- \x7f.]+$/, '')
}

/** The slow and obvious way, for origin-form: undefined where the target is to be refused. */
function naiveForwardTarget(raw: string): string | undefined {
  for (const character of raw) if (character <= ' ' || character > '~' || character === '#') return undefined
  const [sent = '', ...query] = raw.split('?')
  if (sent.includes('\\')) return undefined
  let decoded = ''
  for (let i = 0; i < sent.length; i++) {
    const character = sent.charAt(i)
    if (character !== '%') {
      decoded += character
      continue
    }
    const hex = sent.slice(i + 1, i + 3).toUpperCase()
    if (!/^[0-9A-F]{2}$/.test(hex) || hex === '00' || hex === '5C') return undefined
    const meant = String.fromCharCode(Number.parseInt(hex, 16))
    decoded += /[A-Za-z0-9._~-]/.test(meant) ? meant : `%${hex}`
    i += 2
  }
  let path = removeDotSegments(decoded)
  while (path.includes('//')) path = path.replace('//', '/')
  const [, first = ''] = path.split('/')
  if (sent.includes('://') && /^[A-Za-z][A-Za-z0-9+.-]*:$/.test(first)) return undefined
  return [path, ...query].join('?')
}

/** RFC 3986 section 5.2.4, to the letter, for a path that begins with a slash. */
function removeDotSegments(path: string): string {
  let input = path
  let output = ''
  while (input !== '') {
    if (input.startsWith('/./')) input = input.slice(2)
    else if (input === '/.') input = '/'
    else if (input.startsWith('/../') || input === '/..') {
      input = input === '/..' ? '/' : input.slice(3)
      output = output.slice(0, Math.max(0, output.lastIndexOf('/')))
    } else {
      const [segment = ''] = /^\/?[^/]*/.exec(input) ?? []
      output += segment
      input = input.slice(segment.length)
    }
  }
  return output
}
