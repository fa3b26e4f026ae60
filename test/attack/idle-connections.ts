import { keepCrowd } from './crowd.ts'

// Attackers that send one request, read the response, and keep their connections open.

keepCrowd((socket) => {
  socket.resume()
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
})
