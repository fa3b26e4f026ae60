import { z } from 'zod'
import { numberFromText, wholeNumber } from '../../shared/settings/kinds.ts'
import {
  LARGEST_QUOTA,
  type Cost,
  type CostSource,
  type RequestedUnits,
  type StatusRange,
} from '../policy.ts'

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

const needsUnits = `a whole number from 1 to ${LARGEST_QUOTA}`
const units = wholeNumber(1, LARGEST_QUOTA).schema

const needsSource = 'needs header:NAME or json:PATH, such as json:usage.total_tokens'

// They tell of the connection to the backend, and not of a response (RFC 9110 section 7.6.1).
const connectionFields = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Where the response says what its request has cost. */
const costSource = z
  .string(needsSource)
  .meta({ pattern: '^(header|json):.+$' })
  .transform((written, context): Source => {
    const [, header] = /^header:([!#$%&'*+.^_`|~0-9A-Za-z-]+)$/.exec(written) ?? []
    if (header !== undefined && !connectionFields.has(header.toLowerCase()))
      return { kind: 'header', name: header.toLowerCase() }
    const [, path] = /^json:([^.]+(?:\.[^.]+)*)$/.exec(written) ?? []
    if (path !== undefined) return { kind: 'json', path: path.split('.') }
    context.issues.push({ code: 'custom', message: needsSource, input: written })
    return z.NEVER
  })

type Source =
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'json'; readonly path: readonly string[] }

const needsMember = 'needs the names of members, such as max_tokens or options.num_predict'
const member = z
  .string(needsMember)
  .regex(/^[^.]+(?:\.[^.]+)*$/, needsMember)
  .transform((written) => written.split('.'))

const needsReserve = `needs ${needsUnits}, json:PATH, or a mapping with json and else`

/** What is reserved: a number of units, or where the request says it. */
const reserve = z.union(
  [
    units,
    z
      .string(needsReserve)
      .regex(/^json:[^.]+(?:\.[^.]+)*$/, needsReserve)
      .transform((written): RequestedUnits => ({ paths: [written.slice('json:'.length).split('.')] })),
    z
      .strictObject(
        {
          json: z
            .union([
              member.transform((path) => [path]),
              z.array(member, needsMember).min(1, 'needs at least one entry'),
            ])
            .meta({
              description: "Number in the request's JSON body, or a list, of which the largest counts.",
            }),
          else: units.optional().meta({
            description: 'Units for requests that do not say a number. Default: as many as requests.',
          }),
        },
        needsReserve,
      )
      .transform(({ json, else: otherwise }): RequestedUnits => ({
        paths: json,
        ...(otherwise !== undefined && { otherwise }),
      })),
  ],
  { error: needsReserve },
)

const needsCost = `needs ${needsUnits}, or a mapping with reserve and settle`

const settledCost = z
  .strictObject(
    {
      reserve: reserve.prefault(1).meta({
        description:
          "Units that are reserved while the cost is not known: a number, or json:PATH of the request's body.",
      }),
      settle: costSource.meta({ description: 'Where the response says the cost: header:NAME or json:PATH.' }),
      hide: z
        .boolean('needs true or false')
        .prefault(false)
        .meta({ description: 'Remove the header from the response.' }),
    },
    needsCost,
  )
  .refine(({ settle, hide }) => !hide || settle.kind === 'header', {
    path: ['hide'],
    error: 'needs settle: header:NAME, as only a header can be removed',
  })
  .refine(({ settle, hide }) => !hide || settle.kind !== 'header' || !settle.name.startsWith('content-'), {
    path: ['hide'],
    error: 'needs another header, as clients read the response by this one',
  })
  .transform(({ reserve, settle, hide }): Cost => ({ reserve, settle: sourceOf(settle, hide) }))

/** What a request costs: a number of units, or where the response says it. */
export const cost = z.union([units.transform((reserve): Cost => ({ reserve })), settledCost], {
  error: ({ input }) =>
    typeof input === 'string' && typeof numberFromText(input) === 'number'
      ? `needs ${needsUnits}, not in quotes`
      : needsCost,
})

function sourceOf(source: Source, hide: boolean): CostSource {
  return source.kind === 'header' ? { ...source, hide } : source
}
