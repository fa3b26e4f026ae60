import { server as createServer } from '@hapi/hapi'

// ROUTER: of its options, as JSON.
const server = createServer({
  port: process.env.PORT,
  host: '127.0.0.1',
  router: JSON.parse(process.env.ROUTER),
})
// By itself it ends the process where its router throws, as it does on some targets.
server.ext('onRequest', (request, toolkit) => {
  try {
    server.match(request.method === 'head' ? 'get' : request.method, request.path)
    return toolkit.continue
  } catch {
    return toolkit.response('unreadable').code(400).takeover()
  }
})
const reached = (name) => (_, toolkit) => toolkit.response('reached').header('X-Reached', name)
server.route([
  { method: 'POST', path: '/login', handler: reached('login') },
  { method: 'GET', path: '/api/v1/export/{id}', handler: reached('export') },
  { method: '*', path: '/admin/{rest*}', handler: reached('admin') },
])
await server.start()
