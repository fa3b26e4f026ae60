import { createServer } from 'node:https'
import { body, port, readPair } from './settings.js'

// As bare.js, for clients that use HTTPS.
const headers = { 'content-type': 'application/json', 'content-length': String(body.length) }

createServer(readPair(), (_request, response) => {
  response.writeHead(200, headers)
  response.end(body)
}).listen(port, '127.0.0.1')
