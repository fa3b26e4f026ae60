/*
 * Which folder may import which. `npm run lint:imports` checks it; the picture in docs/architecture.md is drawn from it.
 *
 * The floors of the gateway, the uppermost first. A folder imports only from the floors below its own, for types too.
 */
const floors = [
  ['main', 'healthcheck'],
  ['app'],
  ['server', 'admin', 'config'],
  ['decide', 'connection'],
  ['rules'],
  ['limiter', 'forward', 'request', 'tokens'],
  ['telemetry'],
  ['upstream'],
  ['http'],
  ['policy'],
]

/** The library, and the only files that may import it. */
const libraries = {
  'rate-limiter-flexible': '^proxy/admin/token-guesses[.]ts$',
  ioredis: '^proxy/limiter/redis/[a-z-]+[.]ts$',
  'prom-client': '^proxy/telemetry/prometheus[.]ts$',
  yaml: '^proxy/config/',
  zod: '^(proxy/config|shared/settings|scripts)/',
  'pino(-pretty)?': '^shared/log[.]ts$',
  commander: '^origin/keys[.]ts$',
  jose: '^proxy/tokens/token-claims[.]ts$',
}

/** The path of a folder of the gateway, or of a file in its root. */
const room = (name) => `^proxy/${name}(/|[.]ts$)`

const downwards = floors.flatMap((names, floor) =>
  names.map((name) => ({
    name: `proxy/${name}-imports-only-from-below`,
    severity: 'error',
    from: { path: room(name) },
    to: {
      path: floors.slice(0, floor + 1).flatMap((above) => above.filter((other) => other !== name).map(room)),
    },
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
