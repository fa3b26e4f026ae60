import { cookieValues, findCookie } from '../../request/values/cookie-values.ts'
import { valuesOf } from '../../request/values/decoded-values.ts'
import { hasSoundEscapes, malformedEscape, unescapedTexts } from '../../request/values/escapes.ts'
import { decodedText } from '../../request/values/lenient-text.ts'
import { queriesOf, queryValues } from '../../request/values/query-values.ts'
import { nameTest } from '../../request/values/value-names.ts'
import { maxReadings } from '../keys/partition-key.ts'
import { isPlainWord } from './plain-words.ts'
import { SimplePairs, wantedName, type WantedName } from './simple-pairs.ts'
import { absent, type Readings } from './readings.ts'
import { bytesOf, type Comparison } from './text-tests.ts'

/** To some backends a text ends there, to others it goes on. */
const hasNul = /\0|%(?:25)*00|%(?:25)*u0000/i
const unclear = new RegExp(`${hasNul.source}|${malformedEscape.source}`, 'i')

/** A text with names and values in it, such as all cookies of a request, and how some backend may read it. */
type Pairs = {
  /** The header or the target. */
  readonly text: string
  /** No backend finds any name. */
  readonly isEmpty: boolean
  /** Undefined where a backend may find names and values elsewhere, too. */
  readonly simple: SimplePairs | undefined
  /** All that stands by exactly a name, undefined where the text is not of ordinary characters alone. */
  exact(name: string): readonly string[] | undefined
  /** What some backend may read. */
  find(name: string): readonly string[]
  /** How often some backend may find the name, with or without a value. */
  countNames(name: string): number
  /** Whether a malformed escape or a NUL may be in what some backend takes for the name or its value: what it then reads is not known. */
  mayBeUnclear(name: string): boolean
}

/**
 * What backends may read of a cookie or a query parameter. It is certain only where every parser reads the same: in a header or a
 * query of ordinary characters, in which the name stands once, as the table has it, with a value. Otherwise a quote that opens
 * before it, another spelling of the name, or a thousand parameters before it could hide it from some backend.
 */
class ParameterReadings implements Readings {
  readonly #name: string
  readonly #wanted: WantedName | undefined
  readonly #pairs: Pairs
  /** Where the text has the name in the usual spelling, or -1. */
  readonly #at: number
  #value: string | undefined
  #isLacking: boolean | undefined
  #all: Readings | undefined

  constructor(name: string, wanted: WantedName | undefined, pairs: Pairs) {
    this.#name = name
    this.#wanted = wanted
    this.#pairs = pairs
    this.#at = wanted && pairs.simple ? pairs.simple.find(wanted) : -1
  }

  isAbsent(): boolean {
    return this.#at === -1 && (this.#lacksName() || this.#readAll().isAbsent())
  }

  isPresent(): boolean {
    if (this.#isCertain()) return true
    return !this.#lacksName() && this.#readAll().isPresent()
  }

  likely(): string | undefined {
    if (this.#at === -1 || !this.#wanted) return undefined
    return (this.#value ??= this.#pairs.simple?.valueAt(this.#at, this.#wanted))
  }

  certainly(isSame: (text: string) => boolean): boolean {
    const likely = this.likely()
    if (likely !== undefined && !isSame(likely)) return false
    if (this.#isCertain()) return true
    return !this.#lacksName() && this.#readAll().certainly(isSame)
  }

  possible(): readonly string[] | undefined {
    if (this.#isCertain()) return formsOf(this.likely() ?? '', false)
    return this.#lacksName() ? [] : this.#readAll().possible()
  }

  /** Every backend reads the value, which is not empty. */
  #isCertain(): boolean {
    const { simple } = this.#pairs
    if (this.#at === -1 || !this.#wanted || !simple || !this.likely()) return false
    return simple.isAlone(this.#at, this.#wanted) && simple.isSimple()
  }

  /** The usual case, which costs little. */
  #lacksName(): boolean {
    if (this.#at !== -1) return false
    const { simple, text } = this.#pairs
    return (this.#isLacking ??=
      this.#wanted && simple?.isSimple() ? simple.lacks(this.#wanted) : lacksName(text, this.#name))
  }

  #readAll(): Readings {
    return (this.#all ??= readAll(this.#pairs, this.#name))
  }
}

function readAll(pairs: Pairs, name: string): Readings {
  const found = pairs.find(name)
  const names = pairs.countNames(name)
  if (found.length === 0 && names === 0) return absent
  const sent = pairs.exact(name)
  const isCertain =
    sent !== undefined &&
    sent.length > 0 &&
    sent.length === names &&
    found.length > 0 &&
    !hasNul.test(pairs.text) &&
    !sent.some((value) => blankText.test(decodedText(value, false)))
  const [only, ...others] = isCertain ? sent : []
  const isAnyValuePossible = found.length > maxReadings || pairs.mayBeUnclear(name)
  return {
    isAbsent: () => false,
    isPresent: () => isCertain,
    likely: () => undefined,
    certainly: (isSame) =>
      only !== undefined && others.length === 0 && found.length === 1 && unescapedTexts(only).every(isSame),
    possible: () =>
      isAnyValuePossible ? undefined : [...found, ...(sent ?? []).map((value) => decodedText(value, false))],
  }
}

/** Some backends trim decoded values, and take blank ones for absent. */
const blankText = /^[\s",;']*$/

function formsOf(text: string, isQuoted: boolean): readonly string[] {
  if (isPlainWord(text)) return [text]
  return [...valuesOf(text, { isQuoted, isNumber: false }), decodedText(text, isQuoted)]
}

/** With more parameters, some parsers ignore the rest: `qs` after 1,000, and PHP likewise. */
const MAX_PAIRS = 200

const ordinaryCookies = /^(?:[!#-'*+.^-z|~\w-]+=[!#-+\--:<-[\]-~]*(?:; ?|$))+$/
const cookieName = /[\s;,&"'\\[\]{}()<>\x80-\xff]+/

/** Reads names of one text, for all conditions on it. */
type ReadPairs = (text: string) => Pairs

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
    return ordinaryCookies.test(this.text) && hasSoundEscapes(this.text)
      ? exactPairs(this.text.split(/; ?/), name)
      : undefined
  }

  find(name: string): readonly string[] {
    return cookieValues(this.text, name, maxReadings)
  }

  countNames(name: string): number {
    return this.text.split(cookieName).filter((piece) => isNameOf(piece, name)).length
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
    const isUsual = question !== -1 && isBehind(target, '%', question) && isBehind(target, '&', question)
    this.simple = isUsual ? new SimplePairs(target.slice(question + 1), 'query') : undefined
  }

  exact(name: string): readonly string[] | undefined {
    const query = this.text.slice(this.text.indexOf('?') + 1)
    return this.simple && ordinaryQuery.test(query) && hasSoundEscapes(query)
      ? exactPairs(query.split('&'), name)
      : undefined
  }

  find(name: string): readonly string[] {
    return queryValues(this.text, name, maxReadings)
  }

  countNames(name: string): number {
    return queriesOf(this.text)
      .flatMap((text) => text.split(/[&;]/))
      .filter((piece) => isNameOf(piece.replace(/^=+/, ''), name)).length
  }

  mayBeUnclear(name: string): boolean {
    if (!unclear.test(this.text)) return false
    return queriesOf(this.text)
      .flatMap((text) => text.split('&'))
      .some((pair) => {
        const pieces = pair.split(';').map((piece) => piece.replace(/^=+/, ''))
        if (pieces.some((piece) => isNameOf(piece, name))) return unclear.test(pair)
        return pieces.some(hasUnclearName)
      })
  }
}

/** Whether some backend may take the cookies behind a semicolon for a part of the quoted value before it. */
function mayGoOn(pair: string): boolean {
  return pair.includes('"') && !/^[^"\\]*"[^"\\]*"\s*$/.test(pair)
}

/** Whether a character stands nowhere before an index. */
function isBehind(text: string, character: string, index: number): boolean {
  const at = text.indexOf(character)
  return at === -1 || at > index
}

function keepLast(read: ReadPairs): ReadPairs {
  let last: Pairs | undefined
  return (text) => (last?.text === text ? last : (last = read(text)))
}

/** @param name as the limits table has it */
export function createCookieReader(name: string, read: ReadPairs): (header: string | undefined) => Readings {
  const readings = createReadings(name)
  return (header) => (header ? readings(read(header)) : absent)
}

/** The same readings for all conditions on the name. */
function createReadings(name: string): (pairs: Pairs) => Readings {
  const wanted = wantedName(name)
  let lastPairs: Pairs | undefined
  let last: Readings = absent
  return (pairs) => {
    if (pairs === lastPairs) return last
    lastPairs = pairs
    return (last = new ParameterReadings(name, wanted, pairs))
  }
}

const mayHideQuery = /[%&]/

/** @param name as the limits table has it */
export function createParameterReader(name: string, read: ReadPairs): (target: string) => Readings {
  const readings = createReadings(name)
  return (target) => {
    const pairs = read(target)
    return pairs.isEmpty ? absent : readings(pairs)
  }
}

/** @param isQuoted of a cookie, whose value may be in quotes */
export function comparisonOfParameter(isQuoted: boolean): Comparison {
  return {
    sentAs: bytesOf,
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

/** Of a pair without a value it does not matter. */
function hasUnclearName(pair: string): boolean {
  const equals = pair.indexOf('=')
  return equals !== -1 && unclear.test(pair.slice(0, equals))
}

const usualName = /^[a-z0-9-]+$/i
const mayBeEscaped = /[%\\\x80-\xff]/

/** Whether a text certainly has no such name: the usual case, which costs little. */
function lacksName(text: string, name: string): boolean {
  if (!usualName.test(name) || mayBeEscaped.test(text)) return false
  return !text.includes(name) && !text.toLowerCase().includes(name.toLowerCase())
}
