import { join } from 'node:path'
import { jsonBody } from '../backend.ts'
import { startServer } from '../measure/processes.ts'
import type { Subject } from './subject.ts'

function nodeSubject(name: string, kind: Subject['kind'], script: string): Subject {
  return {
    name,
    kind,
    // The benchmark installs the packages itself before it starts anything.
    missing: () => undefined,
    start: ({ port, backendPort, redisUrl, tls, connections, nodeArgs = [] }) =>
      startServer(
        {
          program: process.execPath,
          args: [...nodeArgs, join(import.meta.dirname, '../servers', script)],
          env: {
            PORT: String(port),
            BACKEND_URL: `http://127.0.0.1:${backendPort}`,
            BODY: jsonBody,
            CONNECTIONS: String(connections),
            ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
            ...(tls && { TLS_CERT_FILE: tls.cert, TLS_KEY_FILE: tls.key }),
          },
        },
        port,
      ),
  }
}

/** Node's HTTP server, which only answers and forwards nothing: every Node proxy costs more. */
export const bare = nodeSubject('bare node:http', 'floor', 'bare.js')
export const bareHttps = nodeSubject('bare node:https', 'floor', 'bare-https.js')
export const bareHttp2 = nodeSubject('bare node:http2', 'floor', 'bare-http2.js')
/** Relays bytes unread. It costs what two sockets and, over HTTPS, the encryption cost every proxy on Node. */
export const relay = nodeSubject('byte relay', 'floor', 'relay.js')
export const httpProxy = nodeSubject('http-proxy', 'node', 'http-proxy.js')
export const undici = nodeSubject('undici', 'node', 'undici.js')
export const fastify = nodeSubject('fastify', 'node', 'fastify.js')
export const express = nodeSubject('express', 'node', 'express.js')
