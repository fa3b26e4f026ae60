import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

// A server in a process of its own, for tests that kill or stop it. It answers with its name. `POST /delay` sets how many milliseconds it
// waits before each answer.

const { NAME = '', HOST = '127.0.0.1', PORT = '0' } = process.env
let delayMs = 0

const server = createServer((request, response) => {
  if (request.url?.startsWith('/delay') && request.method === 'POST')
    delayMs = Number(request.url.split('=')[1])
  setTimeout(() => response.end(NAME), delayMs)
})
server.listen(Number(PORT), HOST, () => console.log(`port ${(server.address() as AddressInfo).port}`))
