import { z } from 'zod'
import { needsUnquoted, numberFromText, wholeNumber } from '../../../shared/settings/kinds.ts'
import { forwardProxyHeaders, hopByHop } from '../../http/fields/removed-headers.ts'
import { tokenCharacters } from '../../http/message/token.ts'
import {
  MAX_QUOTA,
  singleSources,
  type Cost,
  type CostSource,
  type RequestedUnits,
  type SingleCostSource,
  type StatusRange,
} from '../../policy.ts'

const needsStatus = {
  error: needsUnquoted('a status code from 100 to 599, or a class such as 4xx', numberFromText),
}

/** A status code, or a class of them: `401`, `4xx`. */
export const statusRange = z
  .union(
    [
      z.int(needsStatus).min(100, needsStatus).max(599, needsStatus),
      z.string(needsStatus).regex(/^[1-5][xX]{2}$/, needsStatus),
    ],
    needsStatus,
  )
  .transform((written): StatusRange => {
    if (typeof written === 'number') return { first: written, last: written }
    const first = 100 * Number(written[0])
    return { first, last: first + 99 }
  })

/** Returns the range in the form that `statusRange` accepts. */
export function rangeName({ first, last }: StatusRange): string {
  return first === last ? String(first) : `${first / 100}xx`
}

const needsUnits = `a whole number from 1 to ${MAX_QUOTA}`
const units = wholeNumber(1, MAX_QUOTA).schema

const needsSource = 'needs header:NAME or json:PATH, such as json:usage.total_tokens'

// Headers that describe the connection to the backend, not a response (RFC 9110 section 7.6.1).
const connectionFields = new Set([...hopByHop, ...forwardProxyHeaders])

const costHeader = new RegExp(`^header:([${tokenCharacters}]+)$`)

/** Accepts one place where the response states the cost of its request. */
const singleSource = z
  .string(needsSource)
  .meta({ pattern: '^(header|json):.+$' })
  .transform((written, context): SingleCostSource => {
    const [, header] = costHeader.exec(written) ?? []
    if (header !== undefined && !connectionFields.has(header.toLowerCase()))
      return { kind: 'header', name: header.toLowerCase(), hide: false }
    const [, path] = /^json:([^.]+(?:\.[^.]+)*)$/.exec(written) ?? []
    if (path !== undefined) return { kind: 'json', path: path.split('.') }
    context.issues.push({ code: 'custom', message: needsSource, input: written })
    return z.NEVER
  })

const needsEntry = 'needs at least one entry'

const needsSum = 'needs a list of header:NAME and json:PATH'

/** Accepts a list of places, of which the first that the response has counts. */
const firstSource = z
  .array(singleSource, needsSource)
  .min(1, needsEntry)
  .transform((of): CostSource => ({ kind: 'first', of }))

const sumOfSources = z
  .strictObject(
    {
      sum: z
        .array(z.union([singleSource, firstSource], { error: needsSource }), needsSum)
        .min(1, needsEntry)
        .meta({
          description:
            'Numbers to add up, of those that the response has: header:NAME or json:PATH, or a list of these, of which the first found counts.',
        }),
    },
    needsSource,
  )
  .transform(({ sum }): CostSource => ({ kind: 'sum', of: sum }))

const singleOrSum = z.union([singleSource, sumOfSources], { error: needsSource })

/** Accepts the places where the response states the cost of its request. */
const costSource = z.union(
  [
    singleSource,
    sumOfSources,
    z
      .array(singleOrSum, needsSource)
      .min(1, needsEntry)
      .transform((of): CostSource => ({ kind: 'first', of })),
  ],
  { error: needsSource },
)

const needsMember = 'needs the names of members, such as max_tokens or options.num_predict'
const member = z
  .string(needsMember)
  .regex(/^[^.]+(?:\.[^.]+)*$/, needsMember)
  .transform((written) => written.split('.'))

const needsReserve = `needs ${needsUnits}, json:PATH, or a mapping with json and else`

/** Units to reserve: a number, or the place where the request states it. */
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
            description: 'Units for requests that do not state a number. Default: the number in requests.',
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

const needsElse = 'needs reserve or estimate'
const needsCost = `needs ${needsUnits}, or a mapping with reserve and settle`

const settledCost = z
  .strictObject(
    {
      reserve: reserve.prefault(1).meta({
        description:
          "Units to reserve until the cost is known: a number, or json:PATH of the request's body.",
      }),
      settle: costSource.meta({
        description:
          'Where the response states the cost: header:NAME or json:PATH, { sum: LIST } of these, or a list, of which the first that the response has counts.',
      }),
      else: z.enum(['reserve', 'estimate'], needsElse).prefault('reserve').meta({
        description:
          'Cost if the response does not state it: reserve; or estimate, tokens by the bytes of request and response, at least reserve.',
      }),
      hide: z
        .boolean('needs true or false')
        .prefault(false)
        .meta({ description: 'Remove the header from the response.' }),
    },
    needsCost,
  )
  .refine(({ settle, hide }) => !hide || headersIn(settle).length > 0, {
    path: ['hide'],
    error: 'needs settle: header:NAME, as only a header can be removed',
  })
  .refine(({ settle, hide }) => !hide || !headersIn(settle).some((name) => name.startsWith('content-')), {
    path: ['hide'],
    error: 'needs another header, as clients read the response by this one',
  })
  .transform((written): Cost => ({
    reserve: written.reserve,
    settle: written.hide ? hidden(written.settle) : written.settle,
    ...(written.else === 'estimate' && { otherwise: 'estimate' }),
  }))

/** The cost of a request: a number of units, or the place where the response states it. */
export const cost = z.union([units.transform((reserve): Cost => ({ reserve })), settledCost], {
  error: ({ input }) =>
    typeof input === 'string' && typeof numberFromText(input) === 'number'
      ? `needs ${needsUnits}, not in quotes`
      : needsCost,
})

function headersIn(source: CostSource): string[] {
  return singleSources(source).flatMap((single) => (single.kind === 'header' ? [single.name] : []))
}

function hidden(source: CostSource): CostSource {
  if ('of' in source) return { ...source, of: source.of.map(hidden) }
  return source.kind === 'header' ? { ...source, hide: true } : source
}
