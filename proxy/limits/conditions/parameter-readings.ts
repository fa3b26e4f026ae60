import { cookieValues } from '../../request/values/cookie-values.ts'
import { valuesOf } from '../../request/values/decoded-values.ts'
import { decodedText } from '../../request/values/lenient-text.ts'
import { queriesOf, queryValues } from '../../request/values/query-values.ts'
import { nameTest } from '../../request/values/value-names.ts'
import { maxReadings } from '../keys/partition-key.ts'
import { absent, MAYBE, NO, type Readings } from './readings.ts'
import type { Comparison } from './text-tests.ts'

/**
 * What backends may read of a cookie or a query parameter. It is certain only where every parser reads the same: in a header or a
 * query of ordinary characters, in which the name stands once, as the table has it, with a value. Otherwise a quote that opens
 * before it, another spelling of the name, or a thousand parameters before it could hide it from some backend.
 *
 * @param sent all that stands by exactly this name, undefined where the text is not of ordinary characters alone
 * @param found what some backend may read
 * @param isNamed whether some backend may find the name, with or without a value
 */
function combine(
  sent: readonly string[] | undefined,
  found: readonly string[],
  isNamed: () => boolean,
): Readings {
  const isCertain = sent !== undefined && sent.length > 0 && !sent.includes('') && found.length > 0
  if (found.length === 0 && !isNamed()) return absent
  const [only, ...others] = isCertain ? sent : []
  return {
    absence: isCertain ? NO : MAYBE,
    certain: only !== undefined && others.length === 0 && found.length === 1 ? [only] : [],
    possible: () =>
      found.length > maxReadings
        ? undefined
        : [...found, ...(sent ?? []).map((value) => decodedText(value, false))],
  }
}

/** With more parameters, some parsers ignore the rest: `qs` after 1,000, and PHP likewise. */
const MAX_PAIRS = 200

const ordinaryCookies = /^(?:[!#-'*+.^-z|~\w-]+=[!#-+\--:<-[\]-~]*(?:; ?|$))+$/
const cookieName = /[\s;,&"'\\[\]{}()<>\x80-\xff]+/

/** @param header all cookies, joined with `; ` */
export function readCookie(name: string, header: string | undefined): Readings {
  if (header === undefined || header === '') return absent
  if (lacksName(header, name)) return absent
  return combine(
    ordinaryCookies.test(header) ? exactPairs(header.split(/; ?/), name) : undefined,
    cookieValues(header, name, maxReadings),
    () => header.split(cookieName).some((piece) => isNameOf(piece, name)),
  )
}

const ordinaryQuery = /^[\w\-.~!$'()*,:@/?&=%+]*$/

/** @param target path and query as forwarded */
export function readParameter(name: string, target: string): Readings {
  const question = target.indexOf('?')
  if (question === -1 && !mayHideQuery.test(target)) return absent
  if (lacksName(target, name)) return absent
  const query = target.slice(question + 1)
  const isOrdinary =
    question !== -1 && ordinaryQuery.test(query) && !mayHideQuery.test(target.slice(0, question))
  return combine(
    isOrdinary ? exactPairs(query.split('&'), name) : undefined,
    queryValues(target, name, maxReadings),
    () =>
      queriesOf(target).some((text) =>
        text.split(/[&;]/).some((piece) => isNameOf(piece.replace(/^=+/, ''), name)),
      ),
  )
}

const mayHideQuery = /[%&]/

/** @param isQuoted of a cookie, whose value may be in quotes */
export function comparisonOfParameter(isQuoted: boolean): Comparison {
  return {
    formsOf: (text) => [...valuesOf(text, { isQuoted, isNumber: false }), decodedText(text, isQuoted)],
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
