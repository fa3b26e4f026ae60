import methodOverride from 'method-override'

// VERSION: the package, express or express-4. OVERRIDE: the method is taken from the usual fields.
const { default: express } = await import(process.env.VERSION)
const rest = process.env.VERSION === 'express' ? '*rest' : '*'
const app = express()
if (process.env.OVERRIDE) {
  for (const field of ['X-HTTP-Method', 'X-HTTP-Method-Override', 'X-Method-Override'])
    app.use(methodOverride(field, { methods: null }))
}
app.post('/login', (_, response) => response.set('X-Reached', 'login').end('reached'))
app.get('/api/v1/export/:id', (_, response) => response.set('X-Reached', 'export').end('reached'))
app.all(`/admin/${rest}`, (_, response) => response.set('X-Reached', 'admin').end('reached'))
app.listen(process.env.PORT, '127.0.0.1')
