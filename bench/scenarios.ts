import { jsonBody, largeBodyBytes } from './backend.ts'
import {
  bare,
  bareHttp2,
  bareHttps,
  express,
  fastify,
  httpProxy,
  relay,
  undici,
} from './subjects/node-stacks.ts'
import { sluice, sluiceByRules, sluiceByWorkers } from './subjects/sluice.ts'
import type { Subject } from './subjects/subject.ts'
import { haproxy, nginx } from './subjects/system-proxies.ts'

/** HTTP/1.1 over TLS, or HTTP/2 over TLS. */
export type Protocol = 'https' | 'h2'

export type Scenario = {
  readonly name: string
  readonly meaning: string
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** The clients' protocol; undefined for HTTP/1.1 without TLS. */
  readonly protocol?: Protocol
  /** A script of `bench/measure/lua`. */
  readonly script?: string
  /** Bytes sent with each request. */
  readonly uploadBytes: number
  /** The location of counters, for subjects that can choose. */
  readonly store: 'redis' | 'embedded'
  /** The status with which a proxy responds. */
  readonly status: number
  /** The response body, if it comes from the backend. */
  readonly body?: string
  /** The number of clients whose counters in Redis must show every request; undefined if they are not checked. */
  readonly countedClients?: number
  readonly subjects: readonly Subject[]
}

const get = { method: 'GET', uploadBytes: 0, store: 'redis', status: 200, body: jsonBody } as const
const limiters = [sluice, fastify, express, nginx, haproxy]

/** The programs that serve clients over TLS, with HTTP/1.1 and HTTP/2. */
const edges = [sluice, nginx, haproxy]

/** All proxies. Latency and memory are also measured for these. */
export const proxies = [sluice, httpProxy, undici, fastify, express, nginx, haproxy]

export const scenarios: readonly Scenario[] = [
  {
    ...get,
    name: 'pass',
    meaning: 'a request that no limit matches',
    path: '/pass',
    subjects: [bare, relay, ...proxies],
  },
  {
    ...get,
    name: 'limited',
    meaning: 'a limited request that is allowed, all of one client; counted in Redis by those that can',
    path: '/limited',
    countedClients: 1,
    subjects: limiters,
  },
  {
    ...get,
    name: 'limited-many',
    meaning: 'the same, every request of another of 65,536 clients',
    path: '/limited',
    script: 'many-clients.lua',
    countedClients: 65_536,
    subjects: limiters,
  },
  {
    ...get,
    name: 'embedded',
    meaning: 'a limited request that is allowed, counted in the process',
    path: '/limited',
    store: 'embedded',
    subjects: [sluice, fastify, express],
  },
  {
    method: 'GET',
    uploadBytes: 0,
    store: 'redis',
    status: 429,
    name: 'refused',
    meaning: 'a request over the limit; the bare server answers 200 as ever',
    path: '/refused',
    subjects: [bare, ...limiters],
  },
  {
    name: 'body',
    meaning: '64 KiB up and 64 KiB down, not limited',
    method: 'POST',
    path: '/body',
    script: 'body.lua',
    uploadBytes: largeBodyBytes,
    store: 'redis',
    status: 200,
    body: 'r'.repeat(largeBodyBytes),
    subjects: proxies,
  },
  {
    ...get,
    name: 'tls',
    meaning: 'as `pass`, with clients that use HTTPS',
    path: '/pass',
    protocol: 'https',
    subjects: [bareHttps, relay, ...edges],
  },
  {
    ...get,
    name: 'http2',
    meaning: 'as `pass`, with clients that use HTTP/2 over TLS, eight requests at a time on each connection',
    path: '/pass',
    protocol: 'h2',
    subjects: [bareHttp2, ...edges],
  },
  {
    ...get,
    name: 'rules',
    meaning: 'a request that one rule of so many touches, counted in the process',
    path: '/api/v1/things-4/42',
    store: 'embedded',
    subjects: sluiceByRules,
  },
  {
    ...get,
    name: 'workers',
    meaning: 'as `pass`, with several processes on one port',
    path: '/pass',
    subjects: sluiceByWorkers,
  },
]
