import { createServer } from 'node:http'
import { FileStore } from '@tus/file-store'
import { Server } from '@tus/server'

const tus = new Server({
  path: '/files',
  datastore: new FileStore({ directory: process.env.FILES }),
  respectForwardedHeaders: true,
})
const server = createServer((request, response) => {
  if (request.url === '/') response.end('ok')
  else void tus.handle(request, response)
})
server.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('listening'))
