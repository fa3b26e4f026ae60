import { cookieValues } from '../../request/values/cookie-values.ts'
import { valuesOf } from '../../request/values/decoded-values.ts'
import { decodedText } from '../../request/values/lenient-text.ts'
import { queriesOf, queryValues } from '../../request/values/query-values.ts'
import { nameTest } from '../../request/values/value-names.ts'
import { maxReadings } from '../keys/partition-key.ts'
import { comparableName, createSimpleReader, type ComparableName, type SimplePairs } from './simple-pairs.ts'
import { absent, MAYBE, NO, type Readings } from './readings.ts'
import type { Comparison } from './text-tests.ts'

/** To some backends a text ends there, to others it goes on. */
const hasNul = /\0|%(?:25)*00|%(?:25)*u0000/i

/**
 * What backends may read of a cookie or a query parameter. It is certain only where every parser reads the same: in a header or a
 * query of ordinary characters, in which the name stands once, as the table has it, with a value. Otherwise a quote that opens
 * before it, another spelling of the name, or a thousand parameters before it could hide it from some backend.
 *
 * @param text the header or the target
 * @param sent all that stands by exactly this name, undefined where the text is not of ordinary characters alone
 * @param found what some backend may read
 * @param countNames how often some backend may find the name, with or without a value
 */
function combine(
  text: string,
  sent: readonly string[] | undefined,
  found: readonly string[],
  countNames: () => number,
): Readings {
  const names = countNames()
  if (found.length === 0 && names === 0) return absent
  const isCertain =
    sent !== undefined && sent.length > 0 && sent.length === names && !sent.includes('') && found.length > 0
  const [only, ...others] = isCertain ? sent : []
  return {
    absence: isCertain ? NO : MAYBE,
    certain: only !== undefined && others.length === 0 && found.length === 1 ? [only] : [],
    possible: () =>
      found.length > maxReadings || hasNul.test(text)
        ? undefined
        : [...found, ...(sent ?? []).map((value) => decodedText(value, false))],
  }
}

const simpleCookies = createSimpleReader('cookies')
const simpleQuery = createSimpleReader('query')
const simpleName = /^[\w.-]+$/

/** `comparable`: undefined for a name that is not simple. */
export type WantedName = { readonly name: string; readonly comparable: ComparableName | undefined }

/** @param name as the limits table has it */
export function wantedName(name: string): WantedName {
  return { name, comparable: simpleName.test(name) ? comparableName(name) : undefined }
}

/** Undefined where the whole text has to be read. */
function readSimple(pairs: SimplePairs | undefined, name: WantedName): Readings | undefined {
  if (!pairs || name.comparable === undefined) return undefined
  const found = pairs.find(name.comparable)
  if (!found) return absent
  const { name: sent, value, isRepeated } = found
  if (isRepeated || sent !== name.name || value === '') return undefined
  return { absence: NO, certain: [value], possible: () => formsOf(value, false) }
}

function formsOf(text: string, isQuoted: boolean): readonly string[] {
  return [...valuesOf(text, { isQuoted, isNumber: false }), decodedText(text, isQuoted)]
}

/** With more parameters, some parsers ignore the rest: `qs` after 1,000, and PHP likewise. */
const MAX_PAIRS = 200

const ordinaryCookies = /^(?:[!#-'*+.^-z|~\w-]+=[!#-+\--:<-[\]-~]*(?:; ?|$))+$/
const cookieName = /[\s;,&"'\\[\]{}()<>\x80-\xff]+/

/** @param header all cookies, joined with `; ` */
export function readCookie(wanted: WantedName, header: string | undefined): Readings {
  const { name } = wanted
  if (header === undefined || header === '') return absent
  const simple = readSimple(simpleCookies(header), wanted)
  if (simple) return simple
  if (lacksName(header, name)) return absent
  return combine(
    header,
    ordinaryCookies.test(header) ? exactPairs(header.split(/; ?/), name) : undefined,
    cookieValues(header, name, maxReadings),
    () => header.split(cookieName).filter((piece) => isNameOf(piece, name)).length,
  )
}

const ordinaryQuery = /^[\w\-.~!$'()*,:@/?&=%+]*$/

/** @param target path and query as forwarded */
export function readParameter(wanted: WantedName, target: string): Readings {
  const { name } = wanted
  const question = target.indexOf('?')
  if (question === -1 && !mayHideQuery.test(target)) return absent
  const query = target.slice(question + 1)
  const isUsual = question !== -1 && !mayHideQuery.test(target.slice(0, question))
  const simple = isUsual ? readSimple(simpleQuery(query), wanted) : undefined
  if (simple) return simple
  if (lacksName(target, name)) return absent
  const isOrdinary = isUsual && ordinaryQuery.test(query)
  return combine(
    target,
    isOrdinary ? exactPairs(query.split('&'), name) : undefined,
    queryValues(target, name, maxReadings),
    () =>
      queriesOf(target)
        .flatMap((text) => text.split(/[&;]/))
        .filter((piece) => isNameOf(piece.replace(/^=+/, ''), name)).length,
  )
}

const mayHideQuery = /[%&]/

/** @param isQuoted of a cookie, whose value may be in quotes */
export function comparisonOfParameter(isQuoted: boolean): Comparison {
  return {
    formsOf: (text) => formsOf(text, isQuoted),
    partOf: (text) => decodedText(text, isQuoted),
    ignoresCase: false,
  }
}

/** Undefined if there are so many that some parser does not read all. */
function exactPairs(pairs: readonly string[], name: string): readonly string[] | undefined {
  if (pairs.length > MAX_PAIRS) return undefined
  const beginning = `${name}=`
  return pairs.flatMap((pair) => (pair.startsWith(beginning) ? [pair.slice(beginning.length)] : []))
}

function isNameOf(piece: string, name: string): boolean {
  const equals = piece.indexOf('=')
  return nameTest(name)(equals === -1 ? piece : piece.slice(0, equals))
}

const usualName = /^[a-z0-9-]+$/i
const mayBeEscaped = /[%\\\x80-\xff]/

/** Whether a text certainly has no such name: the usual case, which costs little. */
function lacksName(text: string, name: string): boolean {
  if (!usualName.test(name) || mayBeEscaped.test(text)) return false
  return !text.includes(name) && !text.toLowerCase().includes(name.toLowerCase())
}
