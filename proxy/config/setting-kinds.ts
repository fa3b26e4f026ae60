import { isIP } from 'node:net'
import { availableParallelism } from 'node:os'
import { z } from 'zod'
import { upstreamBaseUrl } from '../../shared/settings/addresses.ts'
import {
  flag,
  flagFromText,
  needsUnquoted,
  numberFromText,
  oneOf,
  text,
} from '../../shared/settings/kinds.ts'
import { showValue } from '../../shared/settings/problems.ts'
import type { Kind } from '../../shared/settings/table.ts'
import {
  isHostName,
  MAX_HOSTS,
  namedNetworks,
  sortTrustedProxies,
} from '../request/addresses/trusted-proxies.ts'
import { webhookKey } from '../telemetry/webhooks/signature.ts'
import { readAuthority } from '../request/authority.ts'
import { addressOf } from '../limits/store/redis/connecting/url.ts'

/** The base URL of the backend. Its `pathname` is `/`, or a prefix without a final slash. */
export const upstreamUrl: Kind<URL> = {
  ...upstreamBaseUrl,
  schema: upstreamBaseUrl.schema.transform((url) => new URL(url)),
}

const needsAccessLog = 'true, false (in the environment also 1 or 0) or refused'

const accessLogError = { error: needsUnquoted(needsAccessLog, flagFromText) }

/** Which requests get a log line. */
export const accessLog: Kind<boolean | 'refused'> = {
  ...flag,
  needs: needsAccessLog,
  schema: z.union([z.boolean(accessLogError), z.literal('refused', accessLogError)]),
}

/** The `Host` header that the backend gets. */
export const upstreamHost: Kind<string> = text(
  'keep, upstream, or a host with or without a port, such as app.example.com',
  (host) => readAuthority(host) !== undefined && !host.endsWith(':'),
)

/** Redis: one server, Sentinel or a Cluster. */
export const redisUrl: Kind<string> = {
  ...text(
    'redis://HOST[:PORT][/DB], redis+sentinel://HOST[:PORT],HOST[:PORT]/MASTER or ' +
      'redis+cluster://HOST[:PORT],HOST[:PORT], USER:PASSWORD@ before the first host, rediss for TLS, options such as ?ca=FILE at the end',
    (url) => addressOf(url) !== undefined,
  ),
  show: showRedisUrl,
}

/** Whether a Redis URL has a password, or one for its sentinels; false for a text that is not such a URL. */
export function hasPassword(redisUrl: string): boolean {
  const address = addressOf(redisUrl)
  return address?.password !== undefined || address?.options.sentinelPassword !== undefined
}

const host = String.raw`([\w.-]+|\[[\da-f:.]+\])(:\d+)?`
const showable = new RegExp(String.raw`^([a-z+]+://(\*\*\*@)?)?${host}(,${host})*(/[\w.-]*)*$`, 'i')

/** Shows only text that cannot be a password. In text that is not a URL, the password can be anywhere. */
function showRedisUrl(url: unknown): string {
  if (typeof url !== 'string') return showValue(url)
  const withoutLogin = url.replace(/^([a-z+]+:\/\/)?.*@/is, '$1***@')
  return showable.test(withoutLogin)
    ? showValue(withoutLogin)
    : 'a value that is not shown, as it may hold a password'
}

/**
 * Part of the keys in Redis. It has no braces, which a cluster would read as a hash tag, and is not a number, which would look like a
 * format version.
 */
export const namespace = text(
  '1 to 32 letters, digits, dots, dashes and underscores, beginning with a letter',
  (name) => /^[A-Za-z][A-Za-z0-9._-]{0,31}$/.test(name),
)

/** A bearer token, made of characters that a header can carry. */
export const adminToken: Kind<string> = {
  ...text('16 or more visible ASCII characters, no spaces', (token) => /^[\x21-\x7e]{16,}$/.test(token)),
  show: () => 'a value that is not shown',
}

/** A secret in the format of Standard Webhooks. */
export const webhookSecret: Kind<string> = {
  ...text(
    'whsec_ and 24 to 64 random bytes in base64, as `echo whsec_$(openssl rand -base64 32)` makes one',
    (secret) => webhookKey(secret) !== undefined,
  ),
  show: () => 'a value that is not shown',
}

const needsDeviceSecret =
  'a secret of 32 to 256 visible ASCII characters without commas, as `openssl rand -base64 32` makes one, or two, the new one first'

/**
 * Secrets that make and check device cookies, the newest first. In the environment they are separated by commas, in a file by commas or
 * line ends.
 */
export const deviceSecrets: Kind<string[]> = {
  needs: needsDeviceSecret,
  schema: z
    .array(z.string())
    .refine(
      (secrets) =>
        [1, 2].includes(secrets.length) &&
        new Set(secrets).size === secrets.length &&
        secrets.every((secret) => /^[\x21-\x2b\x2d-\x7e]{32,256}$/.test(secret)),
      `needs ${needsDeviceSecret}`,
    ),
  fromText: (text) => listFromText(text.replaceAll(/\r?\n/g, ',')),
  show: () => 'a value that is not shown',
}

/** Only `1` disables rate limiting. Any other value is false, because a typing mistake must neither disable it nor prevent the start. */
export const disabledByOne: Kind<boolean> = {
  needs: '1 or 0',
  schema: z.string().transform((text) => text === '1'),
}

const aProxy = text(
  `an IP address, a CIDR such as 10.0.0.0/8, one of ${[...namedNetworks.keys()].join(', ')}, or the name of a host`,
  (entry) => namedNetworks.has(entry) || isAddressRange(entry) || isHostName(entry),
)

/** A list of addresses, CIDRs, names of networks and host names; comma-separated in the environment. */
export const trustedProxies: Kind<string[]> = {
  needs: `a list, each entry ${aProxy.needs}`,
  schema: z
    .array(aProxy.schema, 'needs a list, such as [10.0.0.0/8, cloudflare, nginx]')
    .refine(
      (entries) => sortTrustedProxies(entries).hosts.length <= MAX_HOSTS,
      `needs at most ${MAX_HOSTS} names of hosts`,
    ),
  fromText: listFromText,
}

function isAddressRange(range: string): boolean {
  const [, address = '', prefix] = /^([^/%]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(range) ?? []
  const version = isIP(address)
  return version !== 0 && (prefix === undefined || Number(prefix) <= (version === 4 ? 32 : 128))
}

const limitHeaderFormat = oneOf(['ietf', 'x-ratelimit'])

/** A list of formats, which may be empty; in the environment comma-separated, or `none`. */
export const limitHeaderFormats: Kind<('ietf' | 'x-ratelimit')[]> = {
  needs: `a list, each entry ${limitHeaderFormat.needs} (in the environment also none)`,
  schema: z
    .array(limitHeaderFormat.schema, 'needs a list, such as [ietf, x-ratelimit]')
    .refine((formats) => new Set(formats).size === formats.length, 'needs each format only once'),
  fromText: (text) => (text === 'none' ? [] : listFromText(text)),
}

const aProtocol = text(
  'the name of a protocol as in the Upgrade header, such as tcp or SPDY/3.1; websocket needs no entry',
  (name) =>
    /^[\w!#$%&'*+.^`|~-]+(?:\/[\w!#$%&'*+.^`|~-]+)?$/.test(name) && name.toLowerCase() !== 'websocket',
)

/** A list of names of protocols, in lower case; comma-separated in the environment. */
export const upgradeProtocols: Kind<string[]> = {
  needs: `a list, each entry ${aProtocol.needs}`,
  schema: z
    .array(aProtocol.schema, 'needs a list, such as [tcp, h2c]')
    .transform((names) => names.map((name) => name.toLowerCase())),
  fromText: listFromText,
}

function listFromText(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}

const MAX_WORKERS = 1024
const needsWorkers = `auto or a whole number from 1 to ${MAX_WORKERS}`
const workersError = { error: needsUnquoted(needsWorkers, numberFromText) }

/** Number of processes; `auto` is the number of CPU cores available. */
export const workers: Kind<number> = {
  needs: needsWorkers,
  schema: z
    .union([
      z.literal('auto', workersError),
      z.int(workersError).min(1, workersError).max(MAX_WORKERS, workersError),
    ])
    .transform((workers) => (workers === 'auto' ? availableParallelism() : workers)),
  fromText: numberFromText,
}
