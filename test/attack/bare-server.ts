import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'
import { readPair } from '../support/network/certificates.ts'

// Node's own server with nothing around it: it answers each request immediately, without a backend, and leaves bodies unread. A gateway on
// Node cannot avoid what an attack costs this server. Prints its port.

const { values } = parseArgs({ options: { tls: { type: 'boolean', default: false } } })
const answer: RequestListener = (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '2' })
  response.end('ok')
}
// The same timeouts as the gateway's.
const timeouts = { headersTimeout: 10_000, connectionsCheckingInterval: 50 }
const server = values.tls
  ? createHttpsServer({ ...timeouts, ...readPair('first') }, answer)
  : createHttpServer(timeouts, answer)
server.listen(0, '127.0.0.1', 4096, () =>
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`),
)
