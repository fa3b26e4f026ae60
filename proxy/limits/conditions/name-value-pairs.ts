import { cookieValues, findCookie } from '../../request/values/cookie-values.ts'
import { hasValidEscapes, malformedEscape } from '../../request/values/escapes.ts'
import { queriesOf, queryValues } from '../../request/values/query-values.ts'
import { nameTest, withModelNames, type NameTest } from '../../request/values/value-names.ts'
import { MAX_READINGS } from '../keys/partition-key.ts'
import { SimplePairs } from './simple-pairs.ts'

/** A NUL, which ends the text for some backends. */
export const hasNul = /\0|%(?:25)*00|%(?:25)*u0000/i
const unclear = new RegExp(`${hasNul.source}|${malformedEscape.source}`, 'i')

/** A text of names and values, such as all cookies of a request, and the ways in which backends may read it. */
export type Pairs = {
  /** The header or the target. */
  readonly text: string
  /** Whether no backend finds any name in the text. */
  readonly isEmpty: boolean
  /** Finds usual readings quickly; undefined for a target whose query may begin elsewhere than at the question mark. */
  readonly simple: SimplePairs | undefined
  /** The values of exactly this name; undefined if the text has characters that are not ordinary. */
  exact(name: string): readonly string[] | undefined
  /** All values that some backend may read for the name. */
  find(name: string): readonly string[]
  /** How often a backend may find the name, with or without a value. */
  countNames(name: string): number
  /** Whether the name or its value may have a malformed escape or a NUL for some backend, so that it is unknown what this backend reads. */
  mayBeUnclear(name: string): boolean
}

/** Maximum number of parameters, because some parsers ignore the rest: `qs` and PHP after 1,000. */
const MAX_PAIRS = 200

const ordinaryCookies = /^(?:[!#-'*+.^-z|~\w-]+=[!#-+\--:<-[\]-~]*(?:; ?|$))+$/
const cookieName = /[\s;,&"'\\[\]{}()<>\x80-\xff]+/

/** Parses a text once for all conditions on it. */
export type ReadPairs = (text: string) => Pairs

/** Creates a reader of the `Cookie` header. It keeps the pairs of the last text, because all conditions of a request ask about it. */
export function createCookiesReader(): ReadPairs {
  return keepLast((header) => new CookiePairs(header))
}

class CookiePairs implements Pairs {
  readonly isEmpty = false
  readonly text: string
  readonly simple: SimplePairs

  constructor(header: string) {
    this.text = header
    this.simple = new SimplePairs(header, 'cookies')
  }

  exact(name: string): readonly string[] | undefined {
    return ordinaryCookies.test(this.text) && hasValidEscapes(this.text)
      ? exactPairs(this.text.split(/; ?/), name)
      : undefined
  }

  find(name: string): readonly string[] {
    return cookieValues(this.text, name, MAX_READINGS)
  }

  countNames(name: string): number {
    return this.text.split(cookieName).filter((piece) => isNameOf(piece, nameTest(name))).length
  }

  mayBeUnclear(name: string): boolean {
    if (!unclear.test(this.text)) return false
    return this.text.split(';').some((pair) => {
      if (findCookie(pair, nameTest(name)) === undefined) return hasUnclearName(pair)
      return unclear.test(pair) || mayGoOn(pair)
    })
  }
}

const ordinaryQuery = /^[\w\-.~!$'()*,:@/?&=%+]*$/

/** Creates a reader of the query of a target. It keeps the pairs of the last target. */
export function createQueryReader(): ReadPairs {
  return keepLast((target) => new QueryPairs(target))
}

class QueryPairs implements Pairs {
  readonly isEmpty: boolean
  readonly text: string
  readonly simple: SimplePairs | undefined

  constructor(target: string) {
    this.text = target
    const question = target.indexOf('?')
    this.isEmpty = question === -1 && !mayHideQuery.test(target)
    const isUsual =
      question !== -1 && isOnlyAfter(target, '%', question) && isOnlyAfter(target, '&', question)
    this.simple = isUsual ? new SimplePairs(target.slice(question + 1), 'query') : undefined
  }

  exact(name: string): readonly string[] | undefined {
    const query = this.text.slice(this.text.indexOf('?') + 1)
    return this.simple && ordinaryQuery.test(query) && hasValidEscapes(query)
      ? exactPairs(query.split('&'), name)
      : undefined
  }

  find(name: string): readonly string[] {
    return queryValues(this.text, name, MAX_READINGS)
  }

  countNames(name: string): number {
    const matches = withModelNames(nameTest(name))
    return queriesOf(this.text)
      .flatMap((text) => text.split(/[&;]/))
      .filter((piece) => isNameOf(piece.replace(/^=+/, ''), matches)).length
  }

  mayBeUnclear(name: string): boolean {
    if (!unclear.test(this.text)) return false
    const matches = withModelNames(nameTest(name))
    return queriesOf(this.text)
      .flatMap((text) => text.split('&'))
      .some((pair) => {
        const pieces = pair.split(';').map((piece) => piece.replace(/^=+/, ''))
        if (pieces.some((piece) => isNameOf(piece, matches))) return unclear.test(pair)
        return pieces.some(hasUnclearName)
      })
  }
}

/** Whether some backend may take the cookies after a semicolon as part of the quoted value before it. */
function mayGoOn(pair: string): boolean {
  return pair.includes('"') && !/^[^"\\]*"[^"\\]*"\s*$/.test(pair)
}

/** Whether a text has a character only after an index, or not at all. */
function isOnlyAfter(text: string, character: string, index: number): boolean {
  const at = text.indexOf(character)
  return at === -1 || at > index
}

function keepLast(read: ReadPairs): ReadPairs {
  let last: Pairs | undefined
  return (text) => (last?.text === text ? last : (last = read(text)))
}

const mayHideQuery = /[%&]/

/** The values of exactly this name; undefined if there are more pairs than every parser reads. */
function exactPairs(pairs: readonly string[], name: string): readonly string[] | undefined {
  if (pairs.length > MAX_PAIRS) return undefined
  const beginning = `${name}=`
  return pairs.flatMap((pair) => (pair.startsWith(beginning) ? [pair.slice(beginning.length)] : []))
}

function isNameOf(piece: string, matches: NameTest): boolean {
  const equals = piece.indexOf('=')
  return matches(equals === -1 ? piece : piece.slice(0, equals))
}

/** Whether the name of a pair with a value is unclear. */
function hasUnclearName(pair: string): boolean {
  const equals = pair.indexOf('=')
  return equals !== -1 && unclear.test(pair.slice(0, equals))
}
