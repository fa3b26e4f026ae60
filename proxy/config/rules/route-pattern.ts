import { METHODS } from '../../../shared/node-http.ts'
import { z } from 'zod'
import { nearestWord } from '../../../shared/settings/did-you-mean.ts'
import { showValue } from '../../../shared/settings/problems.ts'
import type { RoutePattern } from '../../policy.ts'

const example = 'METHOD PATH, such as "POST /login", "GET,HEAD /users/:id" or "* /api/*"'
// CONNECT has no path, and the request parser refuses methods that Node.js does not know.
const knownMethods = METHODS.filter((method) => method !== 'CONNECT')

/**
 * `METHOD[,METHOD] PATH` as written in the limits table. Rules see paths with escapes decoded and slashes merged, so a pattern has only one
 * valid spelling. The error about any other spelling shows it.
 */
export const routePattern = z
  .string(`needs ${example}`)
  .meta({ pattern: '^(\\*|[A-Z-]+(,[A-Z-]+)*) /' })
  .transform((text, context): RoutePattern => {
    const [, methods = '', path = ''] = /^(\S+)\s+(.*)$/s.exec(text) ?? []
    const mistake = path === '' ? withoutPath(text) : (mistakeInMethods(methods) ?? mistakeInPath(path))
    if (mistake !== undefined) {
      context.issues.push({ code: 'custom', message: `needs ${mistake}`, input: text })
      return z.NEVER
    }
    return { methods: methods === '*' ? [] : methods.split(','), path }
  })

/** A path alone, as in `routes`. */
export const pathPattern = z.string('needs a path that begins with /').transform((path, context): string => {
  const mistake = mistakeInPath(path)
  if (mistake === undefined) return path
  context.issues.push({ code: 'custom', message: `needs ${mistake}`, input: path })
  return z.NEVER
})

function withoutPath(text: string): string {
  return knownMethods.includes(text)
    ? `${example}; in a [list], quotes around an entry that has a comma`
    : example
}

function mistakeInMethods(methods: string): string | undefined {
  if (methods === '*') return undefined
  if (methods.split(',').includes('')) return 'methods separated by one comma and no spaces'
  for (const method of methods.split(',')) {
    if (/^(all|any)$/i.test(method)) return `* in place of ${method}, such as "* /api/*"`
    if (method === '*') return '* alone for every method'
    if (method.includes('|')) return 'methods separated by one comma and no spaces'
    if (knownMethods.includes(method)) continue
    if (knownMethods.includes(method.toUpperCase()))
      return `the method in upper case: ${method.toUpperCase()}`
    const near = nearestWord(method, knownMethods)
    return `a supported HTTP method${near === undefined ? '' : `; did you mean ${near}?`}`
  }
  return undefined
}

// Spellings that cannot occur in the plain form of a path, or that have no meaning in a pattern, each with the correction.
const mistakes: readonly (readonly [RegExp, string])[] = [
  [/^(?!\/)/, 'a path that begins with /'],
  [/\/\//, 'a path without //: rules match paths with repeated slashes merged'],
  [/[?#]/, 'a path without ? and #: rules match neither query nor fragment'],
  [/;|%3b/i, 'a path without ; and %3B: rules match paths without their parameters'],
  [/[\s\p{Cc}]|%(?:[01][0-9a-f]|7f)/iu, 'a path without spaces and control characters'],
  [/\\|%5c/i, 'a path without backslash: rules match / in its place'],
  [/%(?![0-9a-f]{2})/i, 'two hex digits after every %'],
  [
    /(?:\/|%2f)(?:\.|%2e){1,2}(?:\/|%2f|$)/i,
    'a path without . and .. segments: rules match the resolved path',
  ],
  [/\*(?!$)|[^/]\*$/, '* only as the last segment, by itself'],
  [/\/:(?![A-Za-z_][\w-]*(?:\/|$))/, 'a name after : and nothing else in the segment, as in /users/:id'],
  [/\{[^/]*\}|<[^/]*>/, ':name for any one segment, as in /users/:id'],
  // Next.js and regular expressions write brackets, which a path must not contain unless escaped (RFC 3986).
  [/[[\]]/, ':name for any one segment, as in /users/:id, or %5B and %5D in place of brackets'],
  [/\^/, 'a path, which is not a regular expression: leave out ^, or write %5E for the character itself'],
  [/\|/, 'one path in each entry of a list, or %7C for the character | itself'],
]

function mistakeInPath(path: string): string | undefined {
  const mistake = mistakes.find(([form]) => form.test(path))
  if (mistake) return mistake[1]
  const canonical = canonicalSpelling(path)
  return canonical === path ? undefined : `the path in its plain form: ${canonical}`
}

/** Escapes only characters that a path must not contain, with upper-case hex digits (RFC 3986). */
function canonicalSpelling(path: string): string {
  return path
    .toWellFormed()
    .replace(/[^\x21-\x7e]|["<>^`{|}]/gu, encodeURIComponent)
    .replace(/%[0-9a-f]{2}/gi, (escape) => {
      const character = decodeOne(escape)
      return /[A-Za-z0-9\-._~]/.test(character) ? character : escape.toUpperCase()
    })
}

function decodeOne(escape: string): string {
  return String.fromCharCode(Number.parseInt(escape.slice(1), 16))
}

/**
 * Notations of other programs that are valid paths here, each with a note. Such a path matches nothing that the backend serves, so the
 * endpoint would silently have no limit. Of segments with a dollar sign only names of parameters count: those of OData and FHIR, such as
 * `$batch` and `$export`, belong to the path.
 */
const notations: readonly (readonly [RegExp, (found: string) => string])[] = [
  [/,\//, () => 'is one path with a comma; several paths need a list'],
  [
    /\.\+/,
    () =>
      'has the characters .+, as a path is not a regular expression; * as the last segment is for all below it',
  ],
  [
    /(?<=\/)\$\w*(?:id|slug|name)(?=\/|$)/i,
    (name) => `has the literal segment ${name}, not a parameter; :id is for any one segment`,
  ],
  [/\$$/, () => 'ends with the character $, as a path is not a regular expression; leave it out'],
]

/** Returns a note on a valid path in the notation of a web framework or of regular expressions; undefined for any other. */
export function noteOnNotation(path: string): string | undefined {
  for (const [form, note] of notations) {
    const [found] = form.exec(path) ?? []
    if (found !== undefined) return `${showValue(path)} ${note(found)}`
  }
  return undefined
}
