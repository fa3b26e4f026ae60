import { createServer } from 'node:http'
import httpProxy from 'http-proxy'

// http-proxy as its documentation has it, with the client's address in `X-Real-IP` as the others have it.

const [port, backendPort] = process.argv.slice(2).map(Number)
const proxy = httpProxy.createProxyServer({ target: `http://127.0.0.1:${backendPort}` })
proxy.on('error', (_error, _request, response) => {
  // A socket where the request was an upgrade.
  if ('writeHead' in response && !response.headersSent) response.writeHead(502)
  response.end()
})
// A `Trailer` field of a client makes it throw where no handler is, among others. It is compared in what it forwards.
process.on('uncaughtException', () => undefined)

/** @param request whose headers are what http-proxy sends on */
function tellAddress(request) {
  request.headers['x-real-ip'] = request.socket.remoteAddress
}

createServer((request, response) => {
  tellAddress(request)
  proxy.web(request, response)
})
  .on('upgrade', (request, socket, head) => {
    socket.on('error', () => undefined)
    tellAddress(request)
    proxy.ws(request, socket, head)
  })
  .listen(port, '127.0.0.1')
