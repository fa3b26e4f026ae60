// VERSION: the package, fastify or fastify-4. OPTIONS: of its router, as JSON.
const { default: fastify } = await import(process.env.VERSION)
const options = JSON.parse(process.env.OPTIONS)
const app = fastify(process.env.VERSION === 'fastify' ? { routerOptions: options } : options)
app.post('/login', (_, reply) => reply.header('X-Reached', 'login').send('reached'))
app.get('/api/v1/export/:id', (_, reply) => reply.header('X-Reached', 'export').send('reached'))
app.all('/admin/*', (_, reply) => reply.header('X-Reached', 'admin').send('reached'))
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
