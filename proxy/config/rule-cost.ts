import { z } from 'zod'
import { wholeNumber } from '../../shared/settings/kinds.ts'
import type { Cost, CostSource, StatusRange } from '../policy.ts'

const needsStatus = 'needs a status code from 100 to 599, or a class such as 4xx'

/** A status code, or a class of them: `401`, `4xx`. */
export const statusRange = z
  .union(
    [
      z.int(needsStatus).min(100, needsStatus).max(599, needsStatus),
      z.string(needsStatus).regex(/^[1-5]xx$/i, needsStatus),
    ],
    {
      error: needsStatus,
    },
  )
  .transform((written): StatusRange => {
    if (typeof written === 'number') return { first: written, last: written }
    const first = 100 * Number(written[0])
    return { first, last: first + 99 }
  })

const largestCost = 1_000_000_000
const needsUnits = `a whole number from 1 to ${largestCost}`
const units = wholeNumber(1, largestCost).schema

const needsSource = 'needs header:NAME or json:PATH, such as json:usage.total_tokens'

/** Where the response says what its request has cost. */
const costSource = z
  .string(needsSource)
  .meta({ pattern: '^(header|json):.+$' })
  .transform((written, context): Source => {
    const [, header] = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/.exec(written) ?? []
    if (header !== undefined) return { kind: 'header', name: header.toLowerCase() }
    const [, path] = /^json:([^.]+(?:\.[^.]+)*)$/.exec(written) ?? []
    if (path !== undefined) return { kind: 'json', path: path.split('.') }
    context.issues.push({ code: 'custom', message: needsSource, input: written })
    return z.NEVER
  })

type Source =
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'json'; readonly path: readonly string[] }

const settledCost = z
  .strictObject(
    {
      reserve: units
        .prefault(1)
        .meta({ description: 'Units that are reserved while the cost is not known.' }),
      settle: costSource.meta({ description: 'Where the response says the cost: header:NAME or json:PATH.' }),
      hide: z
        .boolean('needs true or false')
        .prefault(false)
        .meta({ description: 'Remove the header from the response.' }),
    },
    `needs ${needsUnits}, or a mapping with reserve and settle`,
  )
  .refine(({ settle, hide }) => !hide || settle.kind === 'header', {
    path: ['hide'],
    error: 'needs settle: header:NAME, as only a header can be removed',
  })
  .transform(({ reserve, settle, hide }): Cost => ({ reserve, settle: sourceOf(settle, hide) }))

/** What a request costs: a number of units, or where the response says it. */
export const cost = z.union([units.transform((reserve): Cost => ({ reserve })), settledCost], {
  error: `needs ${needsUnits}, or a mapping with reserve and settle`,
})

function sourceOf(source: Source, hide: boolean): CostSource {
  return source.kind === 'header' ? { ...source, hide } : source
}
