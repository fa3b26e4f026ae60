import { createSecureServer } from 'node:http2'
import { body, port, readPair } from './settings.js'

// As bare.js, for clients that use HTTP/2, by Node's leaner interface: streams, without requests and responses.
const headers = { 'content-type': 'application/json', 'content-length': String(body.length) }

createSecureServer(readPair())
  .on('stream', (stream) => {
    stream.respond(headers)
    stream.end(body)
  })
  .listen(port, '127.0.0.1')
