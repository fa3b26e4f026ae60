import { createServer } from 'node:http'
import { Pool } from 'undici'
import { addForwardedFields, backendUrl, connections, port } from './settings.js'

// `undici` as a proxy's client, by its leanest interface: `dispatch` with a handler of our own, no streams, no promises.
const pool = new Pool(backendUrl, { connections, pipelining: 1 })
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

function endToEnd(headers) {
  const kept = {}
  for (const name in headers) if (!hopByHop.has(name)) kept[name] = headers[name]
  return kept
}

createServer((request, response) => {
  const { headers: received, method, url } = request
  const headers = addForwardedFields(endToEnd(received), request, request.socket.remoteAddress)
  delete headers.expect

  const hasBody = received['transfer-encoding'] !== undefined || Number(received['content-length'] ?? 0) > 0
  pool.dispatch(
    { path: url, method, headers, body: hasBody ? request : null },
    {
      onRequestStart(controller) {
        response.once('close', () => {
          if (!response.writableFinished) controller.abort(new Error('the client went away'))
        })
      },
      onResponseStart(_controller, status, fields) {
        response.writeHead(status, endToEnd(fields))
      },
      onResponseData(controller, chunk) {
        if (response.write(chunk)) return
        controller.pause()
        response.once('drain', () => controller.resume())
      },
      onResponseEnd() {
        response.end()
      },
      onResponseError() {
        if (!response.headersSent) response.writeHead(502)
        response.end()
      },
    },
  )
}).listen(port, '127.0.0.1')
