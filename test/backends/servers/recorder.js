import { createServer } from 'node:http'

// Says which target has arrived, byte for byte: it is visible ASCII, or Node has refused it.
const server = createServer((request, response) => {
  const { method, url } = request
  const reached =
    method === 'POST' && url === '/login'
      ? 'login'
      : ['GET', 'HEAD'].includes(method) && /^\/api\/v1\/export\/[^/]+$/.test(url)
        ? 'export'
        : url.startsWith('/admin/')
          ? 'admin'
          : undefined
  if (reached) response.setHeader('X-Reached', reached)
  response.setHeader('X-Target', url)
  response.end('reached')
})
server.listen(Number(process.env.PORT), '127.0.0.1')
