import { connect, createServer } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { backendUrl, port, readPair } from './settings.js'

// The floor of a proxy: bytes are relayed unread, each client having a connection to the backend of its own. No HTTP is
// parsed, nothing is decided and no field is added.
const { hostname, port: backendPort } = new URL(backendUrl)

function serve(client) {
  const backend = connect({ host: hostname, port: Number(backendPort), noDelay: true })
  client.setNoDelay(true)
  relay(client, backend)
  relay(backend, client)
}

function relay(from, to) {
  from.on('data', (bytes) => to.write(bytes))
  from.on('error', () => undefined)
  from.on('close', () => to.destroy())
}

const server = process.env.TLS_CERT_FILE ? createTlsServer(readPair(), serve) : createServer(serve)
server.listen(port, '127.0.0.1')
