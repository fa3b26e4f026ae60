import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { partName, singleParts } from '../../proxy/policy/partition.ts'
import { directoryWith, loadWithFile, problemsOf } from '../support/gateway/settings.ts'

const folder = join(import.meta.dirname, '../../docs/recipes')

/** The required content of a page: its options, each in a table, and the rules that its example becomes. */
type Recipe = { readonly options: readonly string[]; readonly rules: readonly string[] }

const proxyOptions = [
  'sourceCriterion.requestHost',
  'sourceCriterion.requestHeaderName',
  'sourceCriterion.ipStrategy.depth',
  'sourceCriterion.ipStrategy.excludedIPs',
  'sourceCriterion.ipStrategy.ipv6Subnet',
]

const recipes: Readonly<Record<string, Recipe>> = {
  // Version 8.6.2, docs/reference/configuration.mdx
  'express-rate-limit.md': {
    options: [
      ...['windowMs', 'limit', 'max', 'message', 'statusCode', 'handler', 'legacyHeaders', 'headers'],
      ...['standardHeaders', 'identifier', 'store', 'passOnStoreError', 'keyGenerator', 'ipv6Subnet'],
      ...['requestPropertyName', 'skip', 'skipSuccessfulRequests', 'skipFailedRequests'],
      ...['requestWasSuccessful', 'validate', 'logger'],
    ],
    rules: ['api fixed 100 in 900 s by ip', 'login fixed 5 in 900 s by ip counting 400-599'],
  },
  // api/v1alpha1/ratelimit_types.go and backendtrafficpolicy_types.go
  'envoy-gateway.md': {
    options: [
      ...['targetRef', 'targetRefs', 'targetSelectors', 'mergeType', 'type', 'global', 'local', 'rules'],
      ...['clientSelectors', 'headers', 'methods', 'path', 'sourceCIDR', 'limit.requests', 'limit.unit'],
      ...['cost.request', 'cost.response', 'shared', 'shadowMode', 'invert', 'Exact', 'Distinct'],
      ...['PathPrefix', 'RegularExpression', 'Number', 'Metadata'],
      ...['circuitBreaker', 'timeout', 'proxyProtocol', 'httpUpgrade', 'requestBuffer', 'healthCheck'],
      ...['loadBalancer', 'retry', 'responseOverride', 'faultInjection', 'compression', 'telemetry'],
      ...['tcpKeepalive', 'connection', 'dns', 'http2', 'useClientProtocol'],
    ],
    rules: [
      'login fixed 30 in 60 s by ip',
      'api fixed 1000 in 3600 s by header:x-api-key',
      'all fixed 500 in 1 s by global',
    ],
  },
  // docs/content/reference/routing-configuration/http/middlewares/ratelimit.md and inflightreq.md
  'traefik.md': {
    options: [
      ...['average', 'period', 'burst', 'amount', 'redis', 'redis.endpoints', 'redis.username'],
      ...['redis.password', 'redis.db', 'redis.poolSize', 'redis.minIdleConns', 'redis.maxActiveConns'],
      ...['redis.readTimeout', 'redis.writeTimeout', 'redis.dialTimeout', 'redis.denyOnError'],
      ...['redis.tls.ca', 'redis.tls.cert', 'redis.tls.key', 'redis.tls.insecureSkipVerify'],
      ...proxyOptions,
    ],
    rules: ['api-rate token-bucket 50 in 30 s by header:x-api-key', 'exports concurrency 2 by ip'],
  },
  // caddyfile.go of caddy-ratelimit
  'caddy.md': {
    options: [
      ...['zone', 'match', 'key', 'window', 'events', 'ipv4_prefix', 'ipv6_prefix', 'distributed'],
      ...['read_interval', 'write_interval', 'purge_age', 'storage', 'jitter', 'sweep_interval'],
      ...['log_key', 'disable_metrics'],
    ],
    rules: ['login sliding 30 in 900 s by ip', 'api sliding 100 in 60 s by header:x-api-key'],
  },
  'challenge.md': {
    options: [],
    rules: [
      'pages fixed 60 in 60 s by ip',
      'search concurrency 20 by global',
      'flood fixed 600 in 60 s by ip',
    ],
  },
  'grpc.md': {
    options: [],
    rules: [
      'add fixed 30 in 60 s by ip',
      'cart fixed 600 in 60 s by header:x-api-key',
      'watch concurrency 3 by ip',
    ],
  },
  // ngx_http_limit_req_module and ngx_http_limit_conn_module
  'nginx.md': {
    options: [
      ...['limit_req_zone', 'zone', 'rate', 'sync', 'limit_req', 'burst', 'nodelay', 'delay'],
      ...['limit_req_dry_run', 'limit_req_log_level', 'limit_req_status', '$limit_req_status'],
      ...['limit_conn_zone', 'limit_conn', 'limit_conn_dry_run', 'limit_conn_log_level'],
      ...['limit_conn_status', '$limit_conn_status'],
    ],
    rules: [
      'login token-bucket 11 in 132 s by ip',
      'api token-bucket 1 in 0.05 s by header:x-api-key',
      'downloads concurrency 2 by ip',
    ],
  },
}

test('there is a page for each', () => {
  expect(readdirSync(folder).sort()).toEqual(Object.keys(recipes).sort())
})

describe.each(Object.entries(recipes))('%s', (page, { options, rules }) => {
  const text = readFileSync(join(folder, page), 'utf8')
  const tables = [...text.matchAll(/```yaml\n(# sluice\.yaml\n[^]*?)```/g)].map(([, yaml = '']) => yaml)

  test('the page has one table, which the gateway takes', () => {
    expect(tables).toHaveLength(1)
    for (const yaml of tables) expect(problemsOf({}, directoryWith(yaml))).toEqual([])
  })

  test('the table has the rules that the page describes', () => {
    expect(tables.flatMap((yaml) => loadWithFile(yaml).settings.rules.map(describeRule))).toEqual(rules)
  })

  test('the page names the equivalent of every option', () => {
    const first = text
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) => line.split(' | ', 1).join())
      .join('\n')
    const missing = options.filter((option) => !new RegExp(`\`${escape(option)}[\`=]`).test(first))
    expect(missing).toEqual([])
  })

  test('the page names only existing settings', () => {
    const known = readFileSync(join(folder, '../configuration.md'), 'utf8')
    const named = [...text.matchAll(/`((?:upstream|redis|store|max|trusted|client|ipv6|proxy)[A-Z]\w*)`/g)]
    const foreign = options.concat('proxyProtocol')
    for (const [, setting = ''] of named)
      if (!foreign.includes(setting)) expect(known, setting).toContain(`\`${setting}\``)
  })
})

type LoadedRule = ReturnType<typeof loadWithFile>['settings']['rules'][number]

function describeRule({ policy }: LoadedRule): string {
  const { name, algorithm, quota, windowMs, partition, countStatus = [] } = policy
  const window = algorithm === 'concurrency' ? '' : ` in ${windowMs / 1000} s`
  const [first, last] = [countStatus[0]?.first, countStatus.at(-1)?.last]
  const counting = first === undefined || last === undefined ? '' : ` counting ${first}-${last}`
  return `${name} ${algorithm} ${quota}${window} by ${singleParts(partition).map(partName).join('+')}${counting}`
}

function escape(text: string): string {
  return text.replaceAll(/[.$]/g, '\\$&')
}
