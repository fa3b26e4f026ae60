import { createServer } from 'node:http'
import { Server } from 'socket.io'

const server = createServer((request, response) => response.end('ok'))
const io = new Server(server, { maxHttpBufferSize: 8e6, pingInterval: 2000, pingTimeout: 20_000 })

io.on('connection', (socket) => {
  socket.on('echo', (value, acknowledge) => acknowledge(value))
  socket.on('join', (room, acknowledge) => {
    void socket.join(room)
    acknowledge()
  })
  socket.on('tell', (room, value) => socket.to(room).emit('told', value))
  // As a network that breaks: the client reconnects by itself.
  socket.on('break', () => socket.conn.transport.close())
  socket.on('stream', () => {
    for (let index = 0; index < 500; index++) socket.emit('piece', index, Buffer.alloc(1 + index * 7, index))
  })
})

server.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('listening'))
