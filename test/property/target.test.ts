import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readTarget, type Target } from '../../proxy/request/target/target.ts'
import { pathReaders } from '../support/http/path-readers.ts'
import { SlowInputs } from '../support/load/least-time.ts'
import { runs } from '../support/random/runs.ts'

/** Targets made of significant pieces in any order. */
const pieces = fc
  .array(
    fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('/', '/', '/', '..', '.', 'a', 'b', 'login') },
      { weight: 4, arbitrary: fc.constantFrom('%2f', '%2F', ';', '%3b', '%3B', '%2e', '%2E%2e', 'x') },
      {
        weight: 2,
        arbitrary: fc.constantFrom(
          '//',
          'A',
          'LOGIN',
          '%6c',
          '%4C',
          '%20',
          '\\',
          '%5c',
          '%25',
          '~',
          '%3f',
          '%23',
          '&',
          '%26',
        ),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          '%252f',
          '%253B',
          '%252e',
          '%256C',
          '%2526',
          '%255c',
          '%25252f',
          '%c3%a9',
          '%C3%89',
        ),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom(
          '%ff',
          '%e2%80',
          '+',
          '%25ff',
          ':',
          '@',
          '[',
          '?',
          'a.php/',
          '/index.php',
          'http:',
          '%3a',
        ),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom('.json', 'index.php/', '/cgi-bin/a/', '%2ephp%2f', 'x.cgi'),
      },
      { weight: 1, arbitrary: fc.constantFrom('.data', '/__data.json', '/_next/data/a/', 'faces/', '.jsf') },
    ),
    { maxLength: 14 },
  )
  .map((parts) => `/${parts.join('')}`)
const spoilt = fc
  .tuple(
    pieces,
    fc.constantFrom('%7f', '%0a', '%250D', '%', '%0', '#', ' ', '%00', '\0', '://', '\xe9', ''),
    pieces,
  )
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
const MAX_US = 200_000

function accepted(raw: string): Target | undefined {
  const target = readTarget('GET', raw)
  return typeof target === 'string' ? undefined : target
}

/**
 * Whether a path is refused because it has more readings than its length allows. A property about readings skips such paths, and bounds
 * their share.
 */
function hasTooManyReadings(raw: string): boolean {
  return readTarget('GET', raw) === 'the path can be read in too many ways'
}

function readings(raw: string): string[] {
  const target = accepted(raw)
  if (!target) throw new Error(`${raw} was refused`)
  return [target.matchPath, ...target.otherMatchPaths]
}

describe('a target', () => {
  test('a target is refused with a reason, or is safe to put on a request line, and never throws', () => {
    fc.assert(
      fc.property(anyTarget, fc.constantFrom('GET', 'POST', 'OPTIONS', 'CONNECT', ''), (raw, method) => {
        const target = readTarget(method, raw)
        if (typeof target === 'string') return target.length > 0
        return /^(?:\/[\x21-\x7e]*|\*)$/.test(target.forwardTarget) && !target.forwardTarget.includes('#')
      }),
      many,
    )
  })

  test('a target has at most some hundred readings if it is short, as each is looked up in the rules', () => {
    fc.assert(
      fc.property(pieces, (raw) => {
        const target = readTarget('POST', raw)
        if (typeof target === 'string') return true
        return target.otherMatchPaths.length <= 250 + 2.5 * raw.length
      }),
      many,
    )
  })

  test('a target is forwarded byte for byte but for its dot segments', () => {
    fc.assert(
      fc.property(anyTarget, (raw) => {
        const target = accepted(raw)
        if (!raw.startsWith('/') || !target) return
        const [path = '', ...query] = raw.split('?')
        expect(target.forwardTarget).toBe([removeDotSegments(path), ...query].join('?'))
        expect(target.path).toBe(removeDotSegments(path))
      }),
      many,
    )
  })

  test('a forwarded target is unchanged when it is forwarded again', () => {
    fc.assert(
      fc.property(anyTarget, (raw) => {
        const target = accepted(raw)
        if (!target) return
        expect(accepted(target.forwardTarget)).toEqual({ ...target, authority: undefined })
      }),
      many,
    )
  })

  test('a target has no control character, however often it is decoded', () => {
    fc.assert(
      fc.property(anyTarget, (raw) => {
        const target = accepted(raw)
        if (!target) return
        let text = target.path
        for (let times = 0; times < 2; times++) {
          expect(text).not.toMatch(/[\0-\x1f\x7f]|%(?:[01][0-9a-f]|7f)/i)
          text = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
            String.fromCharCode(Number.parseInt(hex, 16)),
          )
        }
      }),
      many,
    )
  })

  test('a target has a first reading without the parts that backends ignore', () => {
    fc.assert(
      fc.property(anyTarget, (raw) => {
        const target = accepted(raw)
        if (!target) return
        expect(target.matchPath).not.toMatch(/\/\/|\/\.{1,2}(\/|$)|.\/$|%2f|%3b|;|\\|[A-Z]/)
        expect(target.matchPath).toMatch(/^\//)
      }),
      many,
    )
  })

  test('a target of an accepted length is read in a bounded time', () => {
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
      '&',
      '\\',
      '//',
      '%252f',
      'a.php/',
      'a;b//c%2f..%5c&',
      'a%252fb;%3b/',
    )
    // This takes ten milliseconds; a quadratic step would take a second.
    const slow = new SlowInputs(MAX_US, (raw: string) => readTarget('POST', raw))
    fc.assert(
      fc.property(
        repeated,
        fc.constantFrom('', 'x', ';', '%2f', '%3b', '/', ';%3f', '/%2e%2e%2fx;', '&//%252e%252e/a.php/x.y'),
        (piece, end) => {
          slow.measure(`/${piece.repeat(16_000 / piece.length)}${end}`)
        },
      ),
      { numRuns: runs(100) },
    )
    expect(slow.confirm()).toBeUndefined()
  })
})

describe('a reading of the path', () => {
  const letters = fc.constantFrom('a', 'b', 'login', 'v1', 'api')
  const base = fc.array(letters, { minLength: 1, maxLength: 4 })

  test.each(Object.entries(pathReaders))('includes the path that %s reads', (_, reader) => {
    fc.assert(
      fc.property(pieces, (raw) => {
        const target = accepted(raw)
        const read = target && reader(target.path)
        if (!target || read === undefined) return
        // The gateway's readings are wider than any backend's around names and in letter case. `;` is not part of a pattern. `%25` stays an
        // escape for the gateway where a backend reads `%`.
        const loose = (path: string): string => {
          const names = path
            .toLowerCase()
            .replace(/%(?:25)+/g, '%')
            .replaceAll('%3b', ';')
            .split('/')
            .map(trimmed)
          return names.filter((name) => name !== '').join('/')
        }
        const ours = readings(raw).map((path) => loose(path))
        expect(ours).toContain(loose(read))
      }),
      many,
    )
  })

  test('a reading of the path ends at each delimiter that a router ends the path at', () => {
    const delimiter = fc.constantFrom(';', '%3b', '%3F', '%23', ';a=1;', '/;', ';%2F')
    let [tried, refused] = [0, 0]
    fc.assert(
      fc.property(base, delimiter, pieces, (names, between, rest) => {
        // A path that leaves the route is refused, or is another path in canonical form.
        const raw = `/${names.join('/')}${between}${rest.replaceAll(/\.|%2e|:/gi, '')}`
        tried += 1
        if (hasTooManyReadings(raw)) refused += 1
        else expect(readings(raw)).toContain(`/${names.join('/')}`)
      }),
      many,
    )
    // 0.3 to 0.7 % over 20 seeds of 3,000 paths; 300 are drawn at least.
    expect(refused / tried).toBeLessThan(0.05)
  })

  test('a plain variant of a path is read as the path', () => {
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
        const plain = `/${names.join('/')}`
        expect(readings(raw)).toContain(plain)
        expect(accepted(raw)?.routePath).toBe(plain)
        expect(readings(accepted(raw)?.path ?? '')).toEqual(readings(raw))
      }),
      many,
    )
  })

  test('a disguised variant of a path is read as the path', () => {
    const separator = fc.constantFrom(
      '/',
      '%2F',
      '%2f',
      '/x;/..;/',
      '%2fx%2f..%2F',
      '/x%2f..;y/',
      '%2f%2F',
      '/;/',
      '\\',
      '/x%5c..\\',
    )
    const end = fc.constantFrom('', '/', '%2f', '%5C', ';x', ';x=1;y', '%3bx', '%20', '.', '/.;', '?', '?x=1')
    const parameter = fc.constantFrom('', '', ';', ';p=1', '%3Bp', '%20', '%20;q')
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
    let [tried, refused] = [0, 0]
    fc.assert(
      fc.property(variant, ({ names, raw }) => {
        tried += 1
        if (hasTooManyReadings(raw)) refused += 1
        else expect(readings(raw)[0]).toBe(`/${names.join('/')}`)
      }),
      many,
    )
    // 16 to 23 % over 9 seeds of 300 paths, because many have spaces, and are read without them too.
    expect(refused / tried).toBeLessThan(0.35)
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

/** RFC 3986 section 5.2.4, literally, for a path that begins with a slash. */
function removeDotSegments(path: string): string {
  // Only escaped dots in dot segments are decoded.
  let input = path.replace(/(?<=\/)(?:\.|%2e){1,2}(?=\/|$)/gi, (dots) => dots.replace(/%2e/gi, '.'))
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
