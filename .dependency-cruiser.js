/*
 * Which folder may import which. `npm run lint:imports` checks it; the picture in docs/architecture.md is drawn from it.
 *
 * The floors of the gateway, the uppermost first. A folder imports only from the floors below its own, for types too.
 */
const floors = [
  ['cli', 'embedded', 'testcontainers'],
  ['main', 'healthcheck'],
  ['app'],
  ['server', 'admin', 'config'],
  ['explain'],
  ['decide', 'connection'],
  ['rules', 'clients'],
  ['limiter', 'forward', 'request', 'tokens'],
  ['telemetry'],
  ['upstream'],
  ['http1', 'http2'],
  ['http'],
  ['message', 'policy', 'names'],
]

/** The library, and the only files that may import it. */
const libraries = {
  'rate-limiter-flexible': '^proxy/clients/(ban-counts|bounded-memory)[.]ts$',
  ioredis: '^proxy/limiter/redis/[a-z-]+[.]ts$',
  'prom-client': '^proxy/telemetry/prometheus[.]ts$',
  yaml: '^proxy/config/',
  zod: '^(proxy/(admin|config)|shared/settings|scripts)/',
  testcontainers: '^proxy/testcontainers/',
  'pino(-pretty)?': '^shared/log[.]ts$',
  '@opentelemetry': '^proxy/telemetry/tracing/',
  commander:
    '^(origin/keys|proxy/cli/(command-tree|program|run-command-line|operator-verbs|verb-options))[.]ts$',
  undici: '^proxy/upstream/servers/',
  jose: '^proxy/tokens/(token-claims|verification-keys)[.]ts$',
}

/** The path of a folder of the gateway, or of a file in its root. */
const room = (name) => `^proxy/${name}(/|[.]ts$)`

const notBelow = (name, floor) =>
  floors.slice(0, floor + 1).flatMap((above) => above.filter((other) => other !== name).map(room))

// An empty list would be every path.
const downwards = floors.flatMap((names, floor) =>
  names
    .filter((name) => notBelow(name, floor).length > 0)
    .map((name) => ({
      name: `proxy/${name}-imports-only-from-below`,
      severity: 'error',
      from: { path: room(name) },
      to: { path: notBelow(name, floor) },
    })),
)

const behindOneFile = Object.entries(libraries).map(([library, path]) => ({
  name: `${library}-stays-behind-its-file`,
  severity: 'error',
  from: { path: '^(proxy|origin|shared)/', pathNot: path },
  to: { path: `(^|/)node_modules/${library}/` },
}))

export default {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    ...downwards,
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
      to: { path: '^proxy/limiter/redis/connection[.]ts$', dependencyTypesNot: ['type-only'] },
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
