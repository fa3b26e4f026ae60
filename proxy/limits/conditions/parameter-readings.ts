import { valuesOf } from '../../request/values/decoded-values.ts'
import { unescapedTexts } from '../../request/values/escapes.ts'
import { decodedText } from '../../request/values/lenient-text.ts'
import { MAX_READINGS } from '../keys/partition-key.ts'
import { hasNul, type Pairs, type ReadPairs } from './name-value-pairs.ts'
import { isPlainWord } from './plain-words.ts'
import { wantedName, type WantedName } from './simple-pairs.ts'
import { absent, type Readings } from './readings.ts'
import { bytesOf, type Comparison } from './text-tests.ts'

/**
 * The values that backends may read from a cookie or a query parameter. A value is certain only if every parser reads the same one: the
 * header or query has only ordinary characters, and the name once, spelled as in the table, with a value. Otherwise a quote that opens
 * before the name, another spelling of it, or a thousand parameters before it could hide it from some backend.
 */
class ParameterReadings implements Readings {
  readonly #name: string
  readonly #wanted: WantedName | undefined
  readonly #pairs: Pairs
  /** Index of the name in its usual spelling, or -1. */
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

  /** Whether every backend reads the same value, which is not empty. */
  #isCertain(): boolean {
    const { simple } = this.#pairs
    if (this.#at === -1 || !this.#wanted || !simple || !this.likely()) return false
    return simple.isAlone(this.#at, this.#wanted) && simple.isSimple()
  }

  /** Detects the usual case, an absent parameter, at little cost. */
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
  if (found.length === 0 && pairs.countNames(name) === 0) return absent
  const sent = pairs.exact(name)
  const isCertain =
    sent !== undefined &&
    sent.length > 0 &&
    found.length > 0 &&
    sent.length === pairs.countNames(name) &&
    !hasNul.test(pairs.text) &&
    !sent.some((value) => blankText.test(decodedText(value, false)))
  const [only, ...others] = isCertain ? sent : []
  const isAnyValuePossible = found.length > MAX_READINGS || pairs.mayBeUnclear(name)
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

/** A blank value: some backends trim decoded values and treat blank ones as absent. */
const blankText = /^[\s",;']*$/

function formsOf(text: string, isQuoted: boolean): readonly string[] {
  if (isPlainWord(text)) return [text]
  return [...valuesOf(text, { isQuoted, isNumber: false }), decodedText(text, isQuoted)]
}

/** @param name as written in the limits table */
export function createCookieReader(name: string, read: ReadPairs): (header: string | undefined) => Readings {
  const readings = createReadings(name)
  return (header) => (header ? readings(read(header)) : absent)
}

/** Creates a reader whose readings all conditions on the name share. */
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

/** @param name as written in the limits table */
export function createParameterReader(name: string, read: ReadPairs): (target: string) => Readings {
  const readings = createReadings(name)
  return (target) => {
    const pairs = read(target)
    return pairs.isEmpty ? absent : readings(pairs)
  }
}

/** @param isQuoted the parameter is a cookie, whose value may be in quotes */
export function comparisonOfParameter(isQuoted: boolean): Comparison {
  return {
    sentAs: bytesOf,
    formsOf: (text) => formsOf(text, isQuoted),
    partOf: (text) => decodedText(text, isQuoted),
    ignoresCase: false,
  }
}

const usualName = /^[a-z0-9-]+$/i
const mayBeEscaped = /[%\\\x80-\xff]/

/** Whether a text certainly lacks the name. Detects the usual case at little cost. */
function lacksName(text: string, name: string): boolean {
  if (!usualName.test(name) || mayBeEscaped.test(text)) return false
  return !text.includes(name) && !text.toLowerCase().includes(name.toLowerCase())
}
