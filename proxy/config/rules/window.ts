import { z } from 'zod'
import { longDuration } from '../../../shared/settings/kinds.ts'
import { calendarUnits } from '../../limits/algorithms/calendar/calendar.ts'

const units = calendarUnits.join(', ')

export const needsWindow = `${longDuration.needs}; or ${units} for a window of the calendar`

const error = ({ input }: { readonly input?: unknown }): string => `needs ${needsWindow}${hintFor(input)}`

/** `window` of a rule, read as milliseconds or a calendar unit. */
export const ruleWindow = z.union([
  z.enum(calendarUnits, { error }),
  z
    .string({ error })
    .regex(/^\d{1,12}[smhd]$/, { error })
    .transform((written) => longDuration.schema.safeParse(written).data ?? NaN)
    .pipe(z.number({ error })),
])

const calendarWords = new Map<RegExp, (typeof calendarUnits)[number]>([
  [/^((calendar|each|every|per|1)[ _-]*)?(hours?|hourly)$/i, 'hour'],
  [/^((calendar|each|every|per|1)[ _-]*)?(days?|daily)$/i, 'day'],
  [/^((calendar|each|every|per|1)[ _-]*)?(weeks?|weekly)$/i, 'week'],
  [/^((calendar|each|every|per|1)[ _-]*)?(months?|monthly|mon?)$/i, 'month'],
])

/** Suggests a duration for texts such as `1 hour` and `1w`, and a calendar unit for `monthly` and `1 month`. */
function hintFor(input: unknown): string {
  const length = longDuration.schema.safeParse(input).error?.issues[0]?.message ?? ''
  const [, hint] = /(, did you mean .*)$/.exec(length) ?? []
  if (hint !== undefined) return hint
  const [, unit] = [...calendarWords].find(([word]) => word.test(String(input).trim())) ?? []
  return unit === undefined ? '' : `, did you mean ${unit}?`
}
