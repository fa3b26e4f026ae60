import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

// A server in a process of its own, to be killed or stopped: it answers with its name. `POST /delay` has it wait so many milliseconds
// before each answer.

const { NAME = '', HOST = '127.0.0.1', PORT = '0' } = process.env
let delayMs = 0

const server = createServer((request, response) => {
  if (request.url?.startsWith('/delay') && request.method === 'POST')
    delayMs = Number(request.url.split('=')[1])
  setTimeout(() => response.end(NAME), delayMs)
})
server.listen(Number(PORT), HOST, () => console.log(`port ${(server.address() as AddressInfo).port}`))
