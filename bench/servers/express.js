import { Agent } from 'node:http'
import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { Redis } from 'ioredis'
import { RedisStore } from 'rate-limit-redis'
import { backendUrl, connections, hugeQuota, port, redisUrl, tinyQuota, windowMs } from './settings.js'

const app = express()
app.set('trust proxy', 'loopback')
app.disable('x-powered-by')

const redis = redisUrl && new Redis(redisUrl)
const limiter = (name, limit) =>
  rateLimit({
    windowMs,
    limit,
    standardHeaders: 'draft-8',
    legacyHeaders: false,
    ...(redis && {
      store: new RedisStore({
        prefix: `rl:${name}:`,
        sendCommand: (command, ...args) => redis.call(command, ...args),
      }),
    }),
  })
app.use('/limited', limiter('limited', hugeQuota))
app.use('/refused', limiter('refused', tinyQuota))
app.use(
  createProxyMiddleware({
    target: backendUrl,
    agent: new Agent({ keepAlive: true, maxFreeSockets: connections }),
    // X-Forwarded-For, -Port, -Proto and -Host.
    xfwd: true,
  }),
)

app.listen(port, '127.0.0.1')
