import { registerHooks } from 'node:module'

// Restify 11 loads spdy, which does not run on current Node, and does not use it here.
registerHooks({
  resolve: (specifier, context, next) => next(specifier === 'spdy' ? 'node:http' : specifier, context),
})
// VERSION: the package, restify or restify-11.
const { default: restify } = await import(process.env.VERSION)
const server = restify.createServer()
// By itself it ends the process where the URL cannot be parsed or has no path.
server.pre((request, response, next) => {
  try {
    if (typeof request.getPath() === 'string') return next()
  } catch {
    // An invalid URL.
  }
  response.send(400)
  return next(false)
})
const reached = (name) => (_, response, next) => {
  response.header('X-Reached', name)
  response.send('reached')
  return next()
}
server.post('/login', reached('login'))
server.get('/api/v1/export/:id', reached('export'))
for (const method of ['get', 'post', 'put', 'del']) server[method]('/admin/*', reached('admin'))
server.listen(process.env.PORT, '127.0.0.1')
