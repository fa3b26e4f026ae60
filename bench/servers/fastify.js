import httpProxy from '@fastify/http-proxy'
import rateLimit from '@fastify/rate-limit'
import fastify from 'fastify'
import { Redis } from 'ioredis'
import {
  addForwardedFields,
  backendUrl,
  connections,
  hugeQuota,
  port,
  redisUrl,
  tinyQuota,
  windowMs,
} from './settings.js'

// Its logger stays off, as no subject writes a line for each request.
const app = fastify({ trustProxy: '127.0.0.1' })

await app.register(rateLimit, {
  // Only the routes that ask for it.
  global: false,
  // What its documentation recommends for the connection.
  ...(redisUrl && { redis: new Redis(redisUrl, { connectTimeout: 500, maxRetriesPerRequest: 1 }) }),
})

// It forwards by `undici`, by default with as many connections as there are requests at a time.
const proxy = {
  upstream: backendUrl,
  undici: { connections, pipelining: 1 },
  replyOptions: {
    rewriteRequestHeaders: (request, headers) => addForwardedFields(headers, request.raw, request.ip),
  },
}
const limited = (path, max) => ({
  ...proxy,
  prefix: path,
  rewritePrefix: path,
  config: { rateLimit: { max, timeWindow: windowMs } },
})
await app.register(httpProxy, limited('/limited', hugeQuota))
await app.register(httpProxy, limited('/refused', tinyQuota))
await app.register(httpProxy, proxy)

await app.listen({ port, host: '127.0.0.1' })
