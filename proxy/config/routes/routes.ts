import { z } from 'zod'
import { filePath, flag, oneOf } from '../../../shared/settings/kinds.ts'
import { upstreamBaseUrl } from '../../../shared/settings/addresses.ts'
import { readAuthority } from '../../request/authority.ts'
import { literalPrefix } from '../../limits/rules/strip-prefix.ts'
import { DEFAULT_UPSTREAM } from '../../telemetry/metrics/upstream-counters.ts'
import type { WrittenRoute } from './authorities.ts'
import { health } from './health.ts'
import { requestHeaders } from './request-headers.ts'
import { hostPattern } from './host-pattern.ts'
import { needsName, ruleName } from '../rules/limits.ts'
import { pathPattern } from '../rules/route-pattern.ts'

const isDistinct = (entries: readonly unknown[]): boolean => new Set(entries).size === entries.length

const hosts = z.array(hostPattern).min(1, 'needs at least one entry')
const paths = z.array(pathPattern).min(1, 'needs at least one entry')
const server = upstreamBaseUrl.schema as z.ZodType<string, string>
const servers = z.array(server).min(1, 'needs at least one entry')
const one = <Item>(item: z.ZodType<Item, string>): z.ZodType<Item[], string> =>
  item.transform((only) => [only])

const needsHost = 'needs keep, upstream, or a host with or without a port, such as app.example.com'
const hostWithPort = z
  .string(needsHost)
  .refine((host) => readAuthority(host) !== undefined && !host.endsWith(':'), needsHost)

/** The fields of a route, as written. */
const routeFields = {
  name: z
    .string(needsName)
    .regex(ruleName, needsName)
    .refine(
      (name) => name !== DEFAULT_UPSTREAM,
      `needs another name: ${DEFAULT_UPSTREAM} is that of upstream`,
    )
    .meta({ description: 'Name of the route in metrics and logs. Must be unique.' }),
  hosts: z
    .union([one(hostPattern), hosts])
    .refine(isDistinct, 'needs each host only once')
    .optional()
    .meta({ description: 'Hosts whose requests take the route, as in rules. Default: every host.' }),
  paths: z
    .union([one(pathPattern), paths])
    .refine(isDistinct, 'needs each path only once')
    .optional()
    .meta({ description: 'Paths whose requests take the route, such as /v1/*. Default: every path.' }),
  onlyOver: flag.schema.prefault(false).meta({
    description: 'true: only requests that a rule sends here with over take the route.',
  }),
  upstream: z
    .union([one(server), servers])
    // These checks run only if each entry is a URL.
    .pipe(
      z
        .array(z.string())
        .refine(isDistinct, 'needs each server only once')
        .refine(
          (urls) => new Set(urls.map((url) => new URL(url).pathname)).size <= 1,
          'needs the same path in all URLs',
        ),
    )
    .meta({ description: 'URL of the backend, or a list of equal servers.' }),
  balance: oneOf(['least-connections', 'round-robin']).schema.prefault('least-connections').meta({
    description: 'How to distribute requests over the servers.',
  }),
  upstreamHost: z
    .union([z.enum(['keep', 'upstream'], needsHost), hostWithPort], needsHost)
    .prefault('keep')
    .meta({
      description:
        'Host header that the servers get. keep: that of the request; upstream: that of their URL; or a name.',
    }),
  stripPrefix: flag.schema.prefault(false).meta({
    description: 'true removes the literal prefix of the pattern: with /v1/*, the backend gets /x for /v1/x.',
  }),
  requestHeaders: requestHeaders.optional().meta({
    description: 'Headers that the backend gets, such as X-Script-Name, besides those of the file.',
  }),
  upstreamCaFile: filePath.schema.optional().meta({
    description:
      'PEM file of CA certificates to verify https servers with. Default: upstreamCaFile of the file.',
  }),
  health: health.optional().meta({ description: 'Health checks of the servers. Default: none.' }),
}

const route = z
  .strictObject(routeFields, 'needs a mapping with name and upstream')
  .refine(({ stripPrefix, paths = [] }) => !stripPrefix || (paths.length > 0 && paths.every(hasPrefix)), {
    path: ['stripPrefix'],
    error: 'needs paths that all begin with a prefix, such as /v1/*',
  })
  .refine(({ onlyOver, hosts, paths }) => !onlyOver || (!hosts && !paths), {
    path: ['onlyOver'],
    error: 'cannot be combined with hosts or paths, as no other request takes the route',
  })
  .refine(
    ({ upstreamHost, upstream }) =>
      upstreamHost !== 'upstream' || new Set(upstream.flatMap(hostOf)).size <= 1,
    { path: ['upstreamHost'], error: 'needs a name in place of upstream, as the servers have several' },
  )
  .transform(
    ({
      hosts,
      paths,
      health,
      upstreamHost,
      stripPrefix,
      onlyOver,
      requestHeaders,
      upstreamCaFile,
      ...rest
    }): WrittenRoute => ({
      ...rest,
      ...(hosts && { hosts }),
      ...(paths && { paths }),
      ...(health && { health }),
      ...(upstreamHost !== 'keep' && {
        upstreamHost: upstreamHost === 'upstream' ? hostOf(rest.upstream[0] ?? '').join() : upstreamHost,
      }),
      ...(stripPrefix && { stripPrefix }),
      ...(onlyOver && { onlyOver }),
      ...(requestHeaders && { requestHeaders }),
      ...(upstreamCaFile !== undefined && { upstreamCaFile }),
    }),
  )

/** Returns the host of a URL; empty for a text that is not a URL, which is reported elsewhere. */
const hostOf = (url: string): string[] => (URL.canParse(url) ? [new URL(url).host] : [])

/**
 * Whether a pattern begins with a literal prefix that can be removed. An escaped slash in it can be read in two ways, so such a prefix
 * cannot be removed.
 */
function hasPrefix(path: string): boolean {
  const prefix = literalPrefix(path)
  return prefix !== '' && !/%2f/i.test(prefix)
}

/** The routes, as written. Whether names are unique is checked elsewhere (`findRepeatedNames`). */
export const routes = z.array(route, 'needs a list of routes').meta({
  description: 'Backends by host and path: the first that matches. Without it, everything goes to upstream.',
})
