import { createServer } from 'node:http'
import { Aedes } from 'aedes'
import { createWebSocketStream, WebSocketServer } from 'ws'

// A broker of MQTT over WebSocket.

const broker = await Aedes.createBroker()
const server = createServer((request, response) => response.end('ok'))
const sockets = new WebSocketServer({ server, handleProtocols: () => 'mqtt' })
sockets.on('connection', (socket, request) =>
  broker.handle(readingAll(createWebSocketStream(socket)), request),
)
server.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('listening'))

/**
 * The broker reads once for each `readable` event, and expects all there is. Since Node 26 that is one chunk, so that it would wait for
 * ever for the rest of a packet that comes in several frames.
 */
function readingAll(stream) {
  const read = stream.read.bind(stream)
  stream.read = (size) => {
    if (size !== null) return read(size)
    const chunks = []
    for (let chunk = read(); chunk !== null; chunk = read()) chunks.push(chunk)
    return chunks.length === 0 ? null : Buffer.concat(chunks)
  }
  return stream
}
