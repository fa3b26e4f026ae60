import type { z } from 'zod'
import {
  banned,
  entriesQuery,
  explained,
  limitedQuery,
  overridden,
  overrideRemoved,
  planned,
  question,
  reloaded,
  unbanned,
} from '../bodies.ts'
import * as replies from './replies.ts'

/** One operation: a method of a path. */
export type Operation = {
  readonly summary: string
  readonly body?: { readonly schema: z.ZodType }
  readonly query?: { readonly schema: z.ZodObject }
  /** The body of a 200 response, as JSON unless `contentType` says otherwise. */
  readonly reply: z.ZodType
  readonly contentType?: string
  /** Further error statuses, besides those of every operation, and their meaning. */
  readonly failures?: Readonly<Record<number, string>>
}

type Operations = Readonly<Record<string, Readonly<Partial<Record<'GET' | 'POST', Operation>>>>>

const unknownRule = { 404: 'There is no rule with this name' }
const storeAway = { 503: 'Redis is not available, or did not confirm the change' }

/** The operations for operators. */
export const apiOperations = {
  '/api/status': {
    GET: { summary: 'Version, readiness, and the current table of limits', reply: replies.status },
  },
  '/api/limits': { GET: { summary: 'The current table of limits', reply: replies.limits } },
  '/api/explain': {
    POST: {
      summary: 'Explain what the gateway would do with a request now, without counting it',
      body: explained,
      reply: replies.explanation,
      failures: { 503: 'No worker has answered' },
    },
  },
  '/api/reload': {
    POST: {
      summary: 'Reload the settings and apply their table of limits',
      body: reloaded,
      reply: replies.reloaded,
      failures: { 422: 'The settings are wrong', 503: 'Not all workers applied the new table' },
    },
  },
  '/api/clients/inspect': {
    POST: {
      summary: 'Show how much of its limits a client has used, without counting',
      body: question,
      reply: replies.inspected,
      failures: unknownRule,
    },
  },
  '/api/clients/reset': {
    POST: {
      summary: 'Reset the counters of a client on all replicas',
      body: question,
      reply: replies.reset,
      failures: { ...unknownRule, ...storeAway },
    },
  },
  '/api/clients/limited': {
    GET: {
      summary: 'The clients over a limit, the most refused first',
      query: limitedQuery,
      reply: replies.limited,
      failures: unknownRule,
    },
  },
  '/api/clients/ban': {
    POST: {
      summary: 'Refuse all requests of a client for some time, on all replicas',
      body: banned,
      reply: replies.bansMade,
      failures: { ...unknownRule, 409: 'The maximum number of bans is reached', ...storeAway },
    },
  },
  '/api/clients/unban': {
    POST: {
      summary: 'Lift the bans of a client',
      body: unbanned,
      reply: replies.bansLifted,
      failures: { ...unknownRule, ...storeAway },
    },
  },
  '/api/clients/override': {
    POST: {
      summary: 'Give a client another limit under a rule for some time, on all replicas',
      body: overridden,
      reply: replies.overrideMade,
      failures: { ...unknownRule, 409: 'The maximum number of overrides is reached', ...storeAway },
    },
  },
  '/api/clients/override/remove': {
    POST: {
      summary: 'Remove a limit that was set for a client',
      body: overrideRemoved,
      reply: replies.overrideRemoved,
      failures: { ...unknownRule, ...storeAway },
    },
  },
  '/api/clients/plan': {
    POST: {
      summary: 'Show, set or remove the plan of a client, on all replicas',
      body: planned,
      reply: replies.plan,
      failures: { ...unknownRule, 409: 'The maximum number of plans in memory is reached', ...storeAway },
    },
  },
  '/api/plans': {
    GET: {
      summary: 'Clients with a plan that was set for them, in no order',
      query: entriesQuery,
      reply: replies.plans,
      failures: { 503: 'Redis is not available, or did not answer' },
    },
  },
  '/api/bans': {
    GET: {
      summary: 'The banned clients, those that end last first',
      query: entriesQuery,
      reply: replies.bans,
    },
  },
  '/api/overrides': {
    GET: {
      summary: 'The clients with a limit that was set at run time',
      query: entriesQuery,
      reply: replies.overrides,
    },
  },
  '/api/replicas': { GET: { summary: 'The gateways that count together', reply: replies.replicas } },
  '/api/openapi.json': { GET: { summary: 'This document', reply: replies.document } },
} as const satisfies Operations

/** Further paths for operators. */
export const streams = {
  '/api/events': {
    GET: {
      summary: 'The data of the page, twice a second, as server-sent events',
      reply: replies.text,
      contentType: 'text/event-stream',
      failures: { 503: 'The maximum number of listeners is reached' },
    },
  },
  '/metrics': {
    GET: { summary: 'Metrics for Prometheus', reply: replies.text, contentType: 'text/plain' },
  },
} as const satisfies Operations

/** Paths open to everybody. */
export const probes = {
  '/livez': { GET: { summary: 'Whether the process runs', reply: replies.alive } },
  '/readyz': {
    GET: {
      summary: 'Whether the gateway takes traffic',
      reply: replies.health,
      failures: { 503: 'It is starting or stopping' },
    },
  },
} as const satisfies Operations
