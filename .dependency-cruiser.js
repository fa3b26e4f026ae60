/*
 * Which folder may import which. `npm run lint:imports` checks it; the picture in docs/architecture.md is drawn from it.
 *
 * The layers of the gateway, the uppermost first. A folder imports only from the layers below its own, for types too.
 */
const layers = [
  ['cli', 'testing'],
  ['main', 'healthcheck'],
  ['app'],
  ['server', 'admin', 'config'],
  ['limits'],
  ['request'],
  ['http'],
  ['telemetry'],
  ['policy', 'names'],
]

/** The layers of limits/ and http/, each of which could be a package of its own. */
const inside = {
  limits: [
    ['explain'],
    ['request-table'],
    ['decide'],
    ['verdict'],
    ['conditions'],
    ['costs'],
    ['replies'],
    ['clients'],
    ['keys'],
    ['rules'],
    ['waiting'],
    ['store'],
    ['algorithms'],
  ],
  http: [['forward', 'connection'], ['upstream'], ['http1', 'http2'], ['fields'], ['message']],
}

/** The library, and the only files that may import it. */
const libraries = {
  'rate-limiter-flexible': '^proxy/limits/clients/(ban-counts|bounded-memory)[.]ts$',
  ioredis: '^proxy/limits/store/redis/(connecting/|checks/)?[a-z-]+[.]ts$',
  'prom-client': '^proxy/telemetry/metrics/prometheus[.]ts$',
  yaml: '^proxy/config/',
  zod: '^(proxy/(admin|config)|shared/settings|scripts)/',
  testcontainers: '^proxy/testing/testcontainers/',
  'pino(-pretty)?': '^shared/log[.]ts$',
  '@opentelemetry': '^proxy/telemetry/tracing/',
  commander:
    '^(origin/keys|proxy/cli/(command-tree|program|run-command-line|operate/operator-verbs|verb-options))[.]ts$',
  'mmdb-lib': '^proxy/request/addresses/geo/database[.]ts$',
  undici: '^proxy/http/upstream/servers/',
  jose: '^proxy/limits/keys/tokens/(token-claims|verification-keys)[.]ts$',
}

/** The path of a folder, or of a file beside it. */
const room = (parent, name) => `^${parent}/${name}(/|[.]ts$)`

/** Rules that keep each room of `parent` from importing the rooms of its own storey and of those above. */
function downwards(parent, rows) {
  return rows.flatMap((names, row) =>
    names
      .map((name) => ({
        name: `${parent}/${name}-imports-only-from-below`,
        severity: 'error',
        from: { path: room(parent, name) },
        to: {
          path: rows
            .slice(0, row + 1)
            .flatMap((above) => above.filter((other) => other !== name).map((other) => room(parent, other))),
        },
      }))
      // An empty list would be every path.
      .filter(({ to }) => to.path.length > 0),
  )
}

const behindOneFile = Object.entries(libraries).map(([library, path]) => ({
  name: `${library}-stays-behind-its-file`,
  severity: 'error',
  from: { path: '^(proxy|origin|shared)/', pathNot: path },
  to: { path: `(^|/)node_modules/${library}/` },
}))

export default {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    ...downwards('proxy', layers),
    ...Object.entries(inside).flatMap(([name, rows]) => downwards(`proxy/${name}`, rows)),
    // Each could be a package of its own.
    {
      name: 'http-knows-nothing-of-limits',
      severity: 'error',
      from: { path: '^proxy/http/' },
      to: { path: '^proxy/', pathNot: '^proxy/(http/|telemetry/|policy(/|[.]ts$))', reachable: true },
    },
    {
      name: 'limits-know-nothing-of-connections',
      severity: 'error',
      from: { path: '^proxy/limits/' },
      to: {
        path: '^proxy/',
        pathNot: '^proxy/(limits/|request/|http/(message|fields)/|names/|telemetry/|policy(/|[.]ts$))',
        reachable: true,
      },
    },
    {
      name: 'parts-of-a-policy-are-below-it',
      severity: 'error',
      from: { path: '^proxy/policy/' },
      to: { path: '^proxy/policy[.]ts$' },
    },
    {
      name: 'gateway-and-origin-are-apart',
      severity: 'error',
      from: { path: '^(proxy|origin)/' },
      to: { path: '^(proxy|origin)/', pathNot: '^$1/' },
    },
    {
      name: 'shared-is-the-ground',
      severity: 'error',
      from: { path: '^shared/' },
      to: { path: '^(proxy|origin)/' },
    },
    {
      name: 'only-the-composition-root-connects-to-redis',
      severity: 'error',
      from: { path: '^proxy/', pathNot: '^proxy/app/' },
      to: {
        path: '^proxy/limits/store/redis/connecting/connection[.]ts$',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'opentelemetry-is-loaded-only-where-it-is-wanted',
      severity: 'error',
      from: {
        path: '^(proxy|origin|shared)/',
        pathNot: '^proxy/telemetry/tracing/(opentelemetry|request-spans|span-queue)[.]ts$',
      },
      to: {
        path: '(^proxy/telemetry/tracing/(opentelemetry|request-spans|span-queue)[.]ts$)|(^|/)node_modules/@opentelemetry/',
        dependencyTypesNot: ['dynamic-import'],
      },
    },
    {
      name: 'no-import-that-is-not-there',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    ...behindOneFile,
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // Types count: a folder that needs the types of one above it is built upside down.
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
  },
}
