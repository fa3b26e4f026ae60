import { z } from 'zod'
import { nearestWord } from '../../../../shared/settings/did-you-mean.ts'
import { showValue } from '../../../../shared/settings/problems.ts'
import type { TextTest } from '../../../policy/conditions.ts'

const needs = 'needs absent, present, a value, { prefix: TEXT }, { contains: TEXT }, or a list of them'
const needsText = 'needs a text of 1 to 256 characters'

/** Other words that people write for `absent` and `present`. */
const otherWords = new Map([
  ['missing', 'absent'],
  ['none', 'absent'],
  ['null', 'absent'],
  ['unset', 'absent'],
  ['exists', 'present'],
  ['any', 'present'],
  ['set', 'present'],
  ['*', 'present'],
])

const isShort = (value: string): boolean => value.length >= 1 && value.length <= 256

const word = z
  .string(needs)
  .refine(isShort, needsText)
  .transform((value, context): TextTest => {
    if (value === 'absent' || value === 'present') return { kind: value }
    const suggestion = otherWords.get(value.toLowerCase()) ?? nearestWord(value, ['absent', 'present'])
    if (suggestion === undefined) return { kind: 'is', text: value }
    const message = `did you mean ${suggestion}? For the value itself write { is: ${showValue(value)} }`
    context.issues.push({ code: 'custom', message, input: value })
    return z.NEVER
  })
const number = z.number(needs).transform((value): TextTest => ({ kind: 'is', text: String(value) }))
const boolean = z.boolean(needs).transform((value): TextTest => ({ kind: 'is', text: String(value) }))

const text = z.string(needsText).refine(isShort, needsText)

const form = z
  .strictObject({ is: text.optional(), prefix: text.optional(), contains: text.optional() }, needs)
  .transform((written, context): TextTest => {
    const [only, ...others] = (['is', 'prefix', 'contains'] as const).flatMap((kind) => {
      const value = written[kind]
      return value === undefined ? [] : [{ kind, text: value }]
    })
    if (only && others.length === 0) return only
    context.issues.push({ code: 'custom', message: needs, input: written })
    return z.NEVER
  })

const test = z.union([word, number, boolean, form], needs)

/** Accepts a test of a text, or a list of tests, one of which must hold. */
export const textTests = z
  .union([test.transform((only) => [only]), z.array(test, needs).min(1, 'needs at least one entry')], needs)
  .refine(
    (tests) => !(hasKind(tests, 'absent') && hasKind(tests, 'present')),
    'always holds, as a value is either absent or present: leave the condition out',
  )
  .refine(
    (tests) => !hasKind(tests, 'present') || hasKind(tests, 'absent') || tests.length === 1,
    'needs present alone, as it holds for every value',
  )
  .meta({ id: 'TextTests' })

function hasKind(tests: readonly TextTest[], kind: TextTest['kind']): boolean {
  return tests.some((test) => test.kind === kind)
}
