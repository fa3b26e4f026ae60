import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Policy, RoutePattern, Rule } from '../../proxy/policy.ts'
import { compileRules } from '../../proxy/limits/rules/rule-table.ts'
import { readTarget } from '../../proxy/request/target/target.ts'
import { runs } from '../support/random/runs.ts'

const name = fc.constantFrom('a', 'b', 'C', 'login', '__proto__', 'constructor', 'a.b', 'a+b', '(x', '$')
const segment = fc.oneof(
  { weight: 3, arbitrary: name },
  { weight: 2, arbitrary: fc.constantFrom(':x', ':y') },
)
const patternPath = fc
  .tuple(fc.array(segment, { maxLength: 4 }), fc.boolean())
  .map(([segments, rest]) => `/${[...segments, ...(rest ? ['*'] : [])].join('/')}`)
const methods = fc.uniqueArray(fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE'), { maxLength: 3 })
const pattern: fc.Arbitrary<RoutePattern> = fc.record({ methods, path: patternPath })
const table = fc
  .array(fc.tuple(fc.array(pattern, { minLength: 1, maxLength: 3 }), fc.array(pattern, { maxLength: 2 })), {
    maxLength: 12,
  })
  .map((rules) => rules.map(([match, except], i): Rule => ({ policy: policyNamed(`r${i}`), match, except })))

const path = fc
  .array(fc.oneof(name, fc.constantFrom('z', ':x', '*')), { maxLength: 5 })
  .map((names) => `/${names.join('/')}`)
const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'get')
const overrideField = fc.constantFrom('x-http-method-override', 'x-http-method', 'x-method-override')
const bytes = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) })
const many = { numRuns: runs(2000) }

function policyNamed(policyName: string): Policy {
  const partition = [{ kind: 'ip' }] as const
  return {
    name: policyName,
    quota: 1,
    windowMs: 1000,
    algorithm: 'fixed',
    mode: 'enforce',
    onStoreError: 'local',
    partition,
  }
}

describe('a table of rules', () => {
  test('a table of rules matches as a loop over its rules with a regular expression for each would', () => {
    fc.assert(
      fc.property(table, path, method, (rules, sent, by) => {
        const expected = rules.filter((rule) => naiveMatches(rule, by, sent)).map(({ policy }) => policy)
        expect(compileRules(rules).match(plain(sent), by, {}, 'a')).toEqual(expected)
      }),
      many,
    )
  })

  test('a table of rules matches by host as a loop over its rules would', () => {
    const host = fc
      .array(fc.constantFrom('a', 'b', 'c-d'), { minLength: 1, maxLength: 4 })
      .map((labels) => labels.join('.'))
    const hostPattern = fc.tuple(fc.boolean(), host).map(([isBelow, name]) => (isBelow ? `*.${name}` : name))
    const someHosts = fc.uniqueArray(hostPattern, { minLength: 1, maxLength: 3 })
    const spelling = fc.constantFrom(
      (name: string) => name,
      (name: string) => `${name.toUpperCase()}.`,
      (name: string) => `${name}:8080`,
    )
    const hostTable = table.chain((rules) =>
      fc
        .tuple(...rules.map(() => fc.option(someHosts, { nil: undefined })))
        .map((hosts) => rules.map((rule, i): Rule => (hosts[i] ? { ...rule, hosts: hosts[i] } : rule))),
    )
    const isFor = ({ hosts }: Rule, name: string): boolean =>
      hosts?.some((each) => each === name || (each.startsWith('*.') && name.endsWith(each.slice(1)))) ?? true
    fc.assert(
      fc.property(hostTable, path, method, host, spelling, (rules, sent, by, name, spell) => {
        const expected = rules.filter((rule) => naiveMatches(rule, by, sent) && isFor(rule, name))
        expect(compileRules(rules).match(plain(sent), by, {}, spell(name))).toEqual(
          expected.map(({ policy }) => policy),
        )
      }),
      many,
    )
  })

  test('a table of rules matches under the method sent and under those that override it', () => {
    fc.assert(
      fc.property(table, path, method, fc.dictionary(overrideField, method), (rules, sent, by, headers) => {
        const methodsOf = [by, ...Object.values(headers)]
        const expected = rules.filter((rule) => methodsOf.some((each) => naiveMatches(rule, each, sent)))
        expect(compileRules(rules).match(plain(sent), by, headers, 'a')).toEqual(
          expected.map(({ policy }) => policy),
        )
      }),
      many,
    )
  })

  test('a table of rules matches exactly the rules that match one reading of the path', () => {
    fc.assert(
      fc.property(table, fc.array(path, { minLength: 1, maxLength: 4 }), method, (rules, paths, by) => {
        const expected = rules.filter((rule) => paths.some((each) => naiveMatches(rule, by, each)))
        const [matchPath = '/', ...otherMatchPaths] = paths.map((each) => plain(each).matchPath)
        expect(compileRules(rules).match({ matchPath, otherMatchPaths }, by, {}, 'a')).toEqual(
          expected.map(({ policy }) => policy),
        )
      }),
      many,
    )
  })

  test('matches, whatever a client sends, each policy once and in order', () => {
    const value = fc.oneof(method, fc.string(), fc.array(fc.string()))
    const anyPath = fc.oneof(
      path,
      bytes.map((text) => `/${text}`),
    )
    fc.assert(
      fc.property(
        table,
        anyPath,
        fc.string(),
        fc.dictionary(overrideField, value),
        (rules, sent, by, headers) => {
          const found = compileRules(rules).match(
            { matchPath: sent, otherMatchPaths: [sent, '/a'] },
            by,
            headers,
            'a',
          )
          const places = found.map((policy) => rules.findIndex((rule) => rule.policy === policy))
          expect(places).toEqual([...new Set(places)].sort((a, b) => a - b))
          expect(places).not.toContain(-1)
        },
      ),
      { numRuns: runs(500) },
    )
  })

  test('a table of rules matches every disguised spelling of a limited path', () => {
    const disguise = fc.constantFrom<((text: string) => string)[]>(
      (text) => text.toUpperCase(),
      (text) => text.replaceAll('/', '//'),
      (text) => text.replaceAll('/', '/./'),
      (text) => `/x/..${text}`,
      (text) => `/x%2f..${text}`,
      (text) => `/x/..;y${text}`,
      (text) => text.replaceAll('/', '/;p/'),
      (text) => `${text};p=1`,
      (text) => `${text}%3Bp`,
      (text) => `${text};/p`,
      (text) => `${text}%3b/p`,
      (text) => `${text}%3f/p`,
      (text) => `${text}%23/p`,
      (text) => `${text}/`,
      (text) => `${text}%2f`,
      (text) => `${text}%20`,
      (text) => `${text}%5c`,
      (text) => text.replaceAll('/', '\\').replace('\\', '/'),
      (text) => text.replaceAll('/', '%5C').replace('%5C', '/'),
      (text) => text.replaceAll('o', '%256F'),
      (text) => text.replaceAll('/', '%252f').replace('%252f', '/'),
      (text) => `${text}&x`,
      (text) => `${text}%26x/y`,
      (text) => `/index.php${text}`,
      (text) => `//host${text}`,
      (text) => `${text}?x`,
      (text) => text.replaceAll('o', '%6f'),
      (text) => `/${text.slice(1).replaceAll('/', '%2F')}`,
      (text) => `http://host${text}`,
    )
    const plainNames = fc.array(fc.constantFrom('a', 'login', 'v1'), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(table, plainNames, method, disguise, (rules, names, by, disguised) => {
        const sent = `/${names.join('/')}`
        const target = readTarget(by, disguised(sent))
        if (typeof target === 'string') throw new Error(`${disguised(sent)}: ${target}`)
        const compiled = compileRules(rules)
        expect(compiled.match(target, by, {}, 'a')).toEqual(
          expect.arrayContaining([...compiled.match(plain(sent), by, {}, 'a')]),
        )
      }),
      many,
    )
  })
})

function plain(sent: string): { matchPath: string; otherMatchPaths: readonly string[] } {
  return { matchPath: sent.toLowerCase(), otherMatchPaths: [] }
}

function naiveMatches(rule: Rule, by: string, sent: string): boolean {
  const holds = ({ methods: named, path: text }: RoutePattern): boolean => {
    const upper = by.toUpperCase()
    const isMethod =
      named.length === 0 || named.includes(upper) || (upper === 'HEAD' && named.includes('GET'))
    return isMethod && expression(text).test(sent)
  }
  return rule.match.some(holds) && !rule.except.some(holds)
}

function expression(patternText: string): RegExp {
  if (patternText === '/') return /^\/$/
  const source = patternText
    .split('/')
    .slice(1)
    .map((part) => (part === '*' ? '(?:/.*)?' : part.startsWith(':') ? '/[^/]+' : `/${RegExp.escape(part)}`))
  return new RegExp(`^${source.join('')}$`, 'i')
}
