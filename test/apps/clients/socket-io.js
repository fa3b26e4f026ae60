import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { io } from 'socket.io-client'

// What a client of socket.io sees over polling, over the upgrade to WebSocket, and after a connection has broken.
// Prints it as one line of JSON.

const [origin] = process.argv.slice(2)
const seen = {}
const hash = (value) => createHash('sha256').update(value).digest('hex')
const large = Buffer.alloc(3_000_000, 'position coded ')
const event = async (emitter, name) => (await once(emitter, name))[0]

for (const transports of [['polling'], ['websocket'], ['polling', 'websocket']]) {
  const name = transports.join(', then ')
  const socket = io(origin, { transports, forceNew: true, reconnectionDelay: 50 })
  const upgraded = transports.length === 2 ? event(socket.io.engine, 'upgrade') : undefined
  await event(socket, 'connect')
  const first = socket.id
  await upgraded
  const transport = socket.io.engine.transport.name

  const text = await socket.emitWithAck('echo', { text: 'ü😀', list: [1, null, true] })
  const bytes = await socket.emitWithAck('echo', large)
  const many = await Promise.all(Array.from({ length: 100 }, (_, index) => socket.emitWithAck('echo', index)))

  const pieces = []
  const complete = new Promise((resolve) => {
    socket.on('piece', (index, piece) => {
      pieces.push(`${index} ${piece.length} ${piece[0]}`)
      if (pieces.length === 500) resolve()
    })
  })
  socket.emit('stream')
  await complete

  const other = io(origin, { transports, forceNew: true })
  await event(other, 'connect')
  await other.emitWithAck('join', name)
  const told = event(other, 'told')
  socket.emit('tell', name, 'hello')
  const heard = await told
  other.disconnect()

  const reconnected = event(socket, 'connect')
  socket.emit('break')
  await reconnected
  const after = await socket.emitWithAck('echo', 'again')
  socket.disconnect()

  seen[name] = {
    transport,
    text,
    bytes: hash(bytes) === hash(large),
    many: many.join(),
    pieces: hash(pieces.join()),
    heard,
    isAnother: socket.id !== first,
    after,
  }
}
console.log(JSON.stringify(seen))
process.exit(0)
