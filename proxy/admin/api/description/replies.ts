import { calendarUnits } from '../../../limits/algorithms/calendar/calendar.ts'
import { algorithms } from '../../../limits/algorithms/registry.ts'
import { z } from 'zod'

/* Response bodies of the API. A test compares these with the replies of a gateway. */

const policyName = z.string().describe('the name of a rule')
const routeName = z.string().describe('the name of a route')
const clientKey = z
  .union([
    z.strictObject({ ip: z.string() }),
    z.strictObject({ global: z.literal(true) }),
    z.strictObject({ id: z.string() }).describe('a hash of a value that may be secret'),
  ])
  .describe('as requests take it')
const seconds = z.number().min(0)
const algorithm = z.enum(algorithms.map(({ name }) => name))
const mode = z.enum(['enforce', 'shadow'])
const over = z
  .union([
    z.strictObject({ route: routeName }),
    z.strictObject({ delayMs: z.number(), waiting: z.int().min(1) }),
  ])
  .describe('what happens to requests over the limit')
const calendar = z
  .strictObject({ unit: z.enum(calendarUnits), timezone: z.string() })
  .describe('a calendar window; windowSeconds is the length of the longest usual one')
const by = z.enum(['rule', 'operator'])

const serverState = z.enum(['available', 'ejected', 'unhealthy'])

export const health = z.strictObject({
  status: z.enum(['starting', 'ready', 'stopping']),
  store: z.enum(['memory', 'available', 'unavailable', 'unknown']),
  upstream: z.enum(['available', 'unavailable', 'unknown']),
  servers: z.record(serverState, z.int().min(0)).optional(),
})

export const alive = z.strictObject({ status: z.literal('alive') })

export const status = health.extend({
  version: z.string(),
  uptimeSeconds: z.int().min(0),
  limitsEnabled: z.boolean(),
  rules: z.int().min(0),
  tableHash: z.string(),
  lastReloadSuccessful: z.boolean(),
  workers: z.int().min(1),
  unavailableStoreNodes: z
    .array(z.string())
    .optional()
    .describe(
      'nodes of a Redis cluster that do not answer, as host:port: rules apply onStoreError to their counters',
    ),
  listedServers: z
    .array(
      z.strictObject({
        upstream: z.string().describe('the name of a route, or default for upstream'),
        url: z.string(),
        address: z.string().optional(),
        state: serverState,
      }),
    )
    .optional(),
})

const listEntry = z.union([
  z.strictObject({ ip: z.array(z.union([z.string(), z.strictObject({ file: z.string() })])) }),
  z.strictObject({ header: z.record(z.string(), z.string()) }),
])
const conditions = z.array(z.record(z.string(), z.unknown())).describe('as the table of limits has them')
const keyPart = z.union([z.string(), z.strictObject({ first: z.array(z.string()) })])
const requestedUnits = z.strictObject({ paths: z.array(z.array(z.string())), otherwise: z.int().optional() })
const singleCostSource = z.union([
  z.strictObject({ kind: z.literal('header'), name: z.string(), hide: z.boolean() }),
  z.strictObject({ kind: z.literal('json'), path: z.array(z.string()) }),
])
/** A list in a sum, or a sum in a list. They do not nest deeper. */
const listedCostSource = z.union([
  singleCostSource,
  z.strictObject({ kind: z.enum(['first', 'sum']), of: z.array(singleCostSource) }),
  z.strictObject({
    kind: z.literal('sum'),
    of: z.array(
      z.union([
        singleCostSource,
        z.strictObject({ kind: z.literal('first'), of: z.array(singleCostSource) }),
      ]),
    ),
  }),
])
const lease = z
  .union([z.literal('auto'), z.int().min(2)])
  .describe('units that a gateway takes ahead from Redis: auto, or how many at a time')

const costSource = z.union([
  listedCostSource,
  z.strictObject({ kind: z.literal('first'), of: z.array(listedCostSource) }),
])

export const limits = z.strictObject({
  limitsEnabled: z.boolean(),
  limits: z.array(
    z.strictObject({
      name: policyName,
      match: z.array(z.string()),
      except: z.array(z.string()),
      hosts: z.array(z.string()).optional(),
      when: conditions.optional(),
      unless: conditions.optional(),
      allowList: z.array(listEntry).optional(),
      key: z.array(keyPart),
      requests: z.int(),
      plans: z.record(z.string(), z.int()).optional(),
      plan: z.string().optional(),
      windowSeconds: seconds,
      calendar: calendar.optional(),
      algorithm,
      mode,
      onStoreError: z.enum(['local', 'open', 'closed']),
      over: over.optional(),
      lease: lease.optional(),
      countStatus: z.array(z.strictObject({ first: z.int(), last: z.int() })).optional(),
      cost: z
        .strictObject({
          reserve: z.union([z.int(), requestedUnits]),
          settle: costSource.optional(),
          otherwise: z.literal('estimate').optional(),
        })
        .optional(),
      ban: z
        .strictObject({
          after: z.int(),
          forMs: z.number(),
          maxMs: z.number(),
          scope: z.enum(['rule', 'all']),
        })
        .optional(),
      device: z
        .strictObject({
          cookie: z.string(),
          forMs: z.number(),
          status: z.array(z.strictObject({ first: z.int(), last: z.int() })),
        })
        .optional(),
      averageWindowMs: z.number().optional(),
    }),
  ),
})

const state = z.strictObject({
  policy: policyName,
  client: clientKey.optional(),
  label: z.string().optional(),
  plan: z.string().optional(),
  limit: z.int(),
  windowSeconds: seconds,
  calendar: calendar.optional(),
  mode,
  used: z.number().nullable(),
  remaining: z.number().nullable(),
  exceeded: z.boolean().nullable(),
  resetSeconds: seconds.nullable(),
  source: z.enum(['store', 'local', 'none']),
  onStoreError: z.enum(['open', 'closed', 'local']).optional(),
  bannedSeconds: seconds.optional(),
  overrideSeconds: seconds.optional(),
})

export const inspected = z.strictObject({ states: z.array(state) })
export const reset = z.strictObject({ reset: z.array(policyName), counted: z.array(policyName) })

export const limited = z.strictObject({
  scope: z.enum(['all', 'replica']),
  clients: z.array(
    z.strictObject({
      policy: policyName,
      client: clientKey,
      label: z.string().optional(),
      mode,
      refusals: z.int().min(1),
      resetSeconds: seconds,
    }),
  ),
})

export const replicas = z.strictObject({
  scope: z.enum(['all', 'replica']),
  replicas: z.array(
    z.strictObject({
      host: z.string(),
      self: z.boolean(),
      version: z.string(),
      status: health.shape.status,
      tableHashes: z.array(z.string()),
      workers: z.int().min(1),
    }),
  ),
})

const ban = z.strictObject({
  client: clientKey,
  policy: policyName.nullable(),
  expiresSeconds: seconds,
  by,
  times: z.int().min(1).optional(),
  reason: z.string().optional(),
})
const override = z.strictObject({
  client: clientKey,
  policy: policyName,
  requests: z.int().min(1),
  expiresSeconds: seconds,
  label: z.string().optional(),
})

export const bans = z.strictObject({ total: z.int().min(0), bans: z.array(ban) })
export const overrides = z.strictObject({ total: z.int().min(0), overrides: z.array(override) })
export const bansMade = z.strictObject({ banned: z.array(ban) })
export const bansLifted = z.strictObject({
  unbanned: z.array(z.strictObject({ client: clientKey, policy: policyName.nullable() })),
})
export const overrideMade = z.strictObject({ override })
export const overrideRemoved = z.strictObject({ removed: z.boolean() })

const keyedBy = z.string().describe('the `key` of the rules that read the plan')

export const plan = z.strictObject({
  clients: z.array(
    z.strictObject({
      client: clientKey,
      keyedBy,
      policies: z.array(policyName),
      plan: z.string().nullable(),
      key: z.string().nullable().describe('the key of Redis that holds the plan'),
    }),
  ),
  changed: z.boolean(),
})
export const plans = z.strictObject({
  complete: z.boolean(),
  plans: z.array(
    z.strictObject({ client: clientKey, keyedBy, policies: z.array(policyName), plan: z.string() }),
  ),
})

export const explanation = z.strictObject({
  outcome: z.enum(['rejected', 'answered', 'denied', 'banned', 'limited', 'forwarded']),
  status: z.int().optional(),
  why: z.string().optional(),
  ban: ban.omit({ client: true }).optional(),
  refusedBy: policyName.nullable(),
  routedBy: policyName.nullable(),
  path: z.string().nullable(),
  readings: z.array(z.string()),
  host: z.string().nullable(),
  upstream: z.string().nullable().describe('the name of a route, or default for upstream'),
  client: z.strictObject({
    address: z.string(),
    counts: z.string(),
    peer: z.string(),
    why: z.string(),
  }),
  rules: z.array(
    z.strictObject({
      name: policyName,
      counts: z.boolean(),
      near: z.boolean(),
      why: z.string().optional(),
      override: z.int().min(1).optional(),
      plan: z.string().optional(),
      unread: z
        .enum(['missing', 'type', 'charset', 'encoding', 'size', 'memory', 'syntax', 'value'])
        .optional()
        .describe('why the body does not tell for certain for whom the request counts'),
      keys: z.array(z.string()),
      units: z.array(z.int().min(0)).describe('the units that the request reserves of each of the keys'),
      key: z.array(z.strictObject({ part: z.string(), values: z.array(z.string()) })),
      requests: z.int(),
      windowSeconds: seconds,
      calendar: calendar.optional(),
      algorithm,
      mode,
      over: over.optional(),
      waitingFull: z
        .literal(true)
        .optional()
        .describe('no place to wait is free for the client, in the process that answers'),
      lease: lease.optional(),
      states: z.array(state),
    }),
  ),
})

export const reloaded = z.strictObject({
  outcome: z.enum(['reloaded', 'unchanged']),
  tableHash: z.string(),
  rules: z.int().min(0),
  added: z.array(policyName),
  changed: z.array(policyName),
  removed: z.array(policyName),
  routes: z.strictObject({
    added: z.array(routeName),
    changed: z.array(routeName),
    removed: z.array(routeName),
  }),
  restart: z.array(z.string()),
  warnings: z.array(z.string()),
})

export const failure = z.strictObject({ code: z.int(), error: z.string() })
export const mistaken = failure.extend({ mistakes: z.array(z.string()) })
export const text = z.string()
export const document = z.looseObject({ openapi: z.string() })
