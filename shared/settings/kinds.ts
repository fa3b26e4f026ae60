import { z } from 'zod'
import type { Kind } from './table.ts'

/** A text that passes a test. */
export function text(needs: string, accepts: (text: string) => boolean): Kind<string> {
  return { needs, schema: z.string({ error: needsText(needs, accepts) }).refine(accepts, `needs ${needs}`) }
}

/**
 * Makes the message about a value that is not text. YAML reads `1` and `true` without quotes as a number and a boolean.
 *
 * @param accepts whether the value would be valid in quotes
 */
export function needsText(
  needs: string,
  accepts: (text: string) => boolean,
): (issue: { readonly input?: unknown }) => string {
  return ({ input }) =>
    (typeof input === 'number' || typeof input === 'boolean') && accepts(String(input))
      ? `needs ${needs}, in quotes`
      : `needs ${needs}`
}

/**
 * Makes the message about a wrong value.
 *
 * @param read parses the text of a variable. If it can parse the value, the value was put in quotes in the file.
 */
export function needsUnquoted(
  needs: string,
  read: (text: string) => unknown,
): (issue: { readonly input?: unknown }) => string {
  return ({ input }) =>
    typeof input === 'string' && typeof read(input) !== 'string'
      ? `needs ${needs}, not in quotes`
      : `needs ${needs}`
}

/** The path of a file. No path can contain NUL. */
export const filePath = text('the path of a file', (path) => path !== '' && !path.includes('\0'))

/** Accepts one of a few words. */
export function oneOf<Word extends string>(words: readonly Word[]): Kind<Word> {
  const needs = `one of ${words.join(', ')}`
  return { needs, schema: z.enum(words, `needs ${needs}`) }
}

/** pino's levels, and `silent`. */
export const logLevel = oneOf(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])

const booleans = new Map<string, boolean>([
  ['1', true],
  ['true', true],
  ['0', false],
  ['false', false],
])

/** Converts a variable's text to a boolean if it is one; otherwise returns it unchanged. */
export function flagFromText(text: string): unknown {
  return booleans.get(text) ?? text
}

const needsFlag = 'true or false (in the environment also 1 or 0)'

/** Yes or no: `true` and `false` in a file, in the environment also `1` and `0`. */
export const flag: Kind<boolean> = {
  needs: needsFlag,
  schema: z.boolean({ error: needsUnquoted(needsFlag, flagFromText) }),
  fromText: flagFromText,
}

/** Accepts what `flag` accepts, in any letter case, as OpenTelemetry's specification demands. */
export const flagInAnyCase: Kind<boolean> = {
  ...flag,
  fromText: (text) => booleans.get(text.toLowerCase()) ?? text,
}

/** A whole number within bounds, inclusive. */
export function wholeNumber(min: number, max: number): Kind<number> {
  const needs = `a whole number from ${min} to ${max}`
  const error = needsUnquoted(needs, numberFromText)
  return { needs, schema: z.int({ error }).min(min, { error }).max(max, { error }), fromText: numberFromText }
}

/** Converts a variable's text to a number if it is a whole number in plain digits; otherwise returns it unchanged. */
export function numberFromText(text: string): unknown {
  return /^-?(0|[1-9]\d*)$/.test(text) ? Number(text) : text
}

/** A number from 0 to 1. */
export const fraction: Kind<number> = {
  needs: 'a number from 0 to 1',
  schema: z
    .number('needs a number from 0 to 1')
    .min(0, 'needs a number from 0 to 1')
    .max(1, 'needs a number from 0 to 1'),
  fromText: (text) => (/^\d{1,3}(\.\d{1,18})?$/.test(text) ? Number(text) : text),
}

/** A port to listen on; 0 picks a free one. */
export const port = wholeNumber(0, 65_535)

const unitsMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

type Unit = keyof typeof unitsMs

/**
 * A duration, read as milliseconds: a whole number and a unit.
 *
 * @param min the minimum, written as a duration
 * @param max the maximum, written as a duration
 */
export function duration(
  min: string,
  max: string,
  units: readonly Unit[] = ['ms', 's', 'm', 'h', 'd'],
): Kind<number> {
  const needs = `a duration from ${min} to ${max}: a whole number and a unit (${units.join(', ')})`
  const error = `needs ${needs}`
  const schema = z
    .string(error)
    .regex(new RegExp(`^\\d{1,12}(${units.join('|')})$`), {
      error: ({ input }) => `${error}${hintFor(String(input), units)}`,
    })
    .transform(millisecondsOf)
    .pipe(z.number().min(millisecondsOf(min), error).max(millisecondsOf(max), error))
  return { needs, schema }
}

/** The window of a rule, or the duration of a ban or an override. */
export const longDuration = duration('1s', '365d', ['s', 'm', 'h', 'd'])

const unitWords =
  /^(\d{1,12})?\s*(?:(ms|millis|milliseconds?)|(s|secs?|seconds?)|(m|mins?|minutes?)|(h|hrs?|hours?)|(d|days?)|(w|weeks?))\.?$/i

/** A hint for durations such as `15 minutes`, `1 hour` or `day`, which suggests the form that is accepted. */
function hintFor(text: string, units: readonly Unit[]): string {
  const found = unitWords.exec(text.trim())
  if (!found) return ''
  const [, count = '1', ...words] = found
  const unit = (['ms', 's', 'm', 'h', 'd', 'w'] as const)[words.findIndex(Boolean)]
  const [factor, known] = unit === 'w' ? ([7, 'd'] as const) : ([1, unit] as const)
  if (known === undefined || !units.includes(known)) return ''
  return `, did you mean ${Number(count) * factor}${known}?`
}

function millisecondsOf(duration: string): number {
  const count = Number.parseInt(duration, 10)
  return count * unitsMs[duration.replace(/^\d+/, '') as Unit]
}

const unitsBytes = { k: 1024, m: 1024 ** 2, g: 1024 ** 3 } as const

/**
 * A size, read as bytes: a whole number, alone or with `k`, `m` or `g` (powers of 1024).
 *
 * @param min the minimum, written as a size
 * @param max the maximum, written as a size; without it, any size is allowed
 */
export function size(min = '0k', max?: string): Kind<number> {
  const range = max === undefined ? '' : ` from ${min} to ${max}`
  const needs = `a size${range}: a whole number of bytes, or one with the unit k, m or g`
  const error = needsUnquoted(needs, numberFromText)
  const errorOfText = ({ input }: { readonly input?: unknown }): string => {
    const [, count, unit] = /^(\d{1,6})\s*([kmg])(?:i?b)?$/i.exec(String(input)) ?? []
    return unit === undefined
      ? error({ input })
      : `needs ${needs}, did you mean ${Number(count)}${unit.toLowerCase()}?`
  }
  const maxBytes = max === undefined ? Number.MAX_SAFE_INTEGER : bytesOf(max)
  const withUnit = z.string({ error }).regex(/^\d{1,6}[kmg]$/, { error: errorOfText })
  const schema = z
    .union([z.int({ error }).min(0, { error }), withUnit])
    .transform((size) => (typeof size === 'number' ? size : bytesOf(size)))
    .pipe(z.number().min(bytesOf(min), `needs ${needs}`).max(maxBytes, `needs ${needs}`))
  return { needs, schema, fromText: numberFromText }
}

function bytesOf(size: string): number {
  return Number.parseInt(size, 10) * unitsBytes[size.slice(-1) as keyof typeof unitsBytes]
}
