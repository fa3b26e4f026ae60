import { z } from 'zod'
import type { RuleCondition } from '../../../policy.ts'
import { addressItems } from '../../clients/address-items.ts'
import { hostPattern } from '../../routes/host-pattern.ts'
import { mistakeInHeader, partNames } from '../partition-key.ts'
import { asn, country } from './geo-values.ts'
import { textTests } from './text-tests.ts'

const needsOne = (kind: string, example: string): string =>
  `needs one name and its test, such as { ${example} }; write a separate entry for each further ${kind}`

/** `{ NAME: tests }` */
function named(kind: 'header' | 'cookie' | 'query' | 'jwt', example: string) {
  const needs = needsOne(kind === 'jwt' ? 'claim' : kind, example)
  return z
    .record(z.string(), textTests, needs)
    .refine((written) => Object.keys(written).length === 1, needs)
    .transform((written, context): RuleCondition => {
      const [[given, anyOf] = ['', []]] = Object.entries(written)
      const name = kind === 'header' ? given.toLowerCase() : given
      const isName = partNames[kind]?.test(name) ?? false
      const message = isName ? (kind === 'header' ? mistakeInHeader(name) : undefined) : needs
      if (message === undefined) return { kind, name, anyOf }
      context.issues.push({ code: 'custom', message, input: given })
      return z.NEVER
    })
}

const oneOrMany = <Item, Written>(item: z.ZodType<Item, Written>) =>
  z.union([item.transform((only) => [only]), z.array(item).min(1, 'needs at least one entry')])

/** The kinds of conditions, as fields of an entry. */
const kinds = {
  header: named('header', 'authorization: absent').meta({
    description:
      'A header: { NAME: absent, present, VALUE, { prefix: TEXT }, { contains: TEXT } or a list }.',
  }),
  cookie: named('cookie', 'sid: absent').meta({ description: 'A cookie, in the same form.' }),
  query: named('query', 'preview: present').meta({ description: 'A query parameter, in the same form.' }),
  jwt: named('jwt', 'plan: free').meta({
    description: 'A claim of the verified token, in the same form.',
  }),
  userAgent: textTests
    .transform((anyOf): RuleCondition => ({ kind: 'userAgent', anyOf }))
    .meta({ description: 'The User-Agent, letter case ignored: absent, a value, { contains: TEXT }, …' }),
  host: oneOrMany(hostPattern)
    .transform((anyOf): RuleCondition => ({ kind: 'host', anyOf }))
    .meta({ description: 'Hosts: a name, *.NAME, or a list of them.' }),
  country: oneOrMany(country)
    .transform((anyOf): RuleCondition => ({ kind: 'country', anyOf }))
    .meta({ description: 'Countries of client addresses, such as DE, by geoip; or unknown.' }),
  asn: oneOrMany(asn)
    .transform((anyOf): RuleCondition => ({ kind: 'asn', anyOf }))
    .meta({ description: 'Autonomous systems of client addresses, such as AS64496, by geoip; or unknown.' }),
  ip: addressItems
    .transform(({ ranges, files }): RuleCondition => ({
      kind: 'ip',
      anyOf: [{ kind: 'ip', ranges, ...(files.length > 0 && { files }) }],
    }))
    .meta({
      description: 'Addresses of clients: an address, a CIDR, a name of networks, a file, or a list.',
    }),
}

/** The kinds of conditions. */
const conditionFields = Object.keys(kinds)

const needsEntry = `needs one of ${conditionFields.slice(0, -1).join(', ')} and ${conditionFields.at(-1) ?? ''} in each entry, such as header: { authorization: absent }`

const condition = z
  .strictObject(
    {
      header: kinds.header.optional(),
      cookie: kinds.cookie.optional(),
      query: kinds.query.optional(),
      jwt: kinds.jwt.optional(),
      userAgent: kinds.userAgent.optional(),
      host: kinds.host.optional(),
      country: kinds.country.optional(),
      asn: kinds.asn.optional(),
      ip: kinds.ip.optional(),
    },
    needsEntry,
  )
  .transform((written, context): RuleCondition => {
    const [only, ...others] = Object.values(written).filter((value) => value !== undefined)
    if (only && others.length === 0) return only
    context.issues.push({ code: 'custom', message: needsEntry, input: written })
    return z.NEVER
  })
  .meta({ id: 'Condition' })

/** Maximum conditions of one rule. */
const MAX_CONDITIONS = 32

/** `when` or `unless`, as written: a condition or a list of them. */
export const conditions = z
  .union([
    condition.transform((only) => [only]),
    z.array(condition, needsEntry).min(1, 'needs at least one entry'),
  ])
  .refine((all) => all.length <= MAX_CONDITIONS, `needs at most ${MAX_CONDITIONS} entries`)
