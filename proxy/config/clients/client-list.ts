import { z } from 'zod'
import { createRequestClassifier } from '../../http/fields/header-roles.ts'
import type { ListEntry } from '../../policy.ts'
import type { OverrideClient } from './override-accounts.ts'
import { addressItems, listFile, listPath } from './address-items.ts'
import { parseAddressRange } from '../../request/addresses/ip-address.ts'

const needsRange = 'needs an IP address or a CIDR, such as 203.0.113.7 or 10.0.0.0/8'
const needsEntry = 'needs ip, file or header, one of the three'
const needsMapping = `${needsEntry}, such as { ip: 10.0.0.0/8 }`
// The message does not quote the value: a text that is not a hash may be the secret itself.
const needsHash =
  'got a value that is not shown, needs sha256: and 64 hex digits, which "printf %s SECRET | sha256sum" prints'
const needsHeader = 'header needs one name with its hash, such as { x-probe-token: "sha256:9f86d0…" }'

const MAX_ENTRIES = 10_000

const range = z
  .string(needsRange)
  .refine((text) => parseAddressRange(text) !== undefined, needsRange)
  .meta({ description: 'An IP address or a CIDR.' })

const emptyHash = /^sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855$/i

const sha256 = z
  .string(needsHash)
  .regex(/^[sS][hH][aA]256:[0-9a-fA-F]{64}$/, needsHash)
  .refine((text) => !emptyHash.test(text), 'the hash is that of an empty text, which no header has')
  .transform((text) => text.slice('sha256:'.length).toLowerCase())

/** Recognizes headers that clients send and that no other part of the gateway reads, sets or removes. */
const classify = createRequestClassifier([], true)

const secretHeader = z
  .record(z.string(), sha256, needsHeader)
  .refine((header) => Object.keys(header).length === 1, needsHeader)
  .refine(
    (header) => Object.keys(header).every((name) => classify(name.toLowerCase())?.role === 'end-to-end'),
    'header needs the name of a header that clients send, such as x-probe-token',
  )
  .transform((header) => {
    const [[name, hash] = ['', '']] = Object.entries(header)
    return { name: name.toLowerCase(), sha256: hash }
  })

const entry = z
  .strictObject(
    {
      ip: addressItems
        .optional()
        .meta({ description: 'An address, a CIDR, a name of networks, a file, or a list of them.' }),
      file: listPath.optional().meta({
        description: 'File with one address or CIDR a line, read again when it changes.',
      }),
      header: secretHeader
        .optional()
        .meta({ description: 'A header with the SHA-256 of its value: { NAME: sha256:HEX }.' }),
    },
    { error: ({ code }) => (code === 'invalid_type' ? needsMapping : needsEntry) },
  )
  .refine((given) => Object.values(given).filter((value) => value !== undefined).length === 1, needsEntry)
  .transform(({ ip, file, header }): ListEntry => {
    if (header) return { kind: 'header', ...header }
    const { ranges = [], files = file === undefined ? [] : [listFile(file)] } = ip ?? {}
    return { kind: 'ip', ranges, ...(files.length > 0 && { files }) }
  })

/** `allowList` or `denyList`, as written. */
export const clientList = z
  .array(entry, 'needs a list of entries with ip, file or header')
  .max(MAX_ENTRIES, `needs at most ${MAX_ENTRIES} entries`)

const needsClient = 'needs one of ip: ADDRESS, header:NAME: sha256:HEX and body:NAME: ACCOUNT'
const needsValue = ({ input }: { readonly input?: unknown }): string =>
  typeof input === 'number' || typeof input === 'boolean'
    ? 'needs an account, in quotes if it is a number'
    : needsClient

/** Accepts one client of an override: `{ ip: … }`, `{ 'header:NAME': sha256:… }` or `{ 'body:NAME': … }`. */
const client = z
  .record(z.string(), z.string({ error: needsValue }), needsClient)
  .transform((written, context): OverrideClient => {
    const [[name, value] = ['', ''], ...others] = Object.entries(written)
    if (/^body:./.test(name) && others.length === 0) return { kind: 'account', part: name, value }
    const header = /^header:(.+)$/.exec(name)?.[1]
    const isOne = others.length === 0 && (name === 'ip' || header !== undefined)
    const parsed = header === undefined ? range.safeParse(value) : secretHeader.safeParse({ [header]: value })
    if (isOne && parsed.success)
      return typeof parsed.data === 'string'
        ? { kind: 'ip', ranges: [parsed.data] }
        : { kind: 'header', ...parsed.data }
    const message = isOne ? (parsed.error?.issues[0]?.message ?? needsClient) : needsClient
    // The value may be a secret.
    context.issues.push({ code: 'custom', message, input: undefined })
    return z.NEVER
  })

/** The clients of an override. */
export const overrideClients = z
  .union([client.transform((only) => [only]), z.array(client).min(1, 'needs at least one entry')])
  .refine((clients) => clients.length <= MAX_ENTRIES, `needs at most ${MAX_ENTRIES} entries`)
