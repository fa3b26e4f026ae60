import { serve } from '@hono/node-server'
import { Hono } from 'hono'

// STRICT: `false` for a router to which a slash at the end makes no difference.
const app = new Hono({ strict: process.env.STRICT !== 'false' })
app.post('/login', (context) => context.text('reached', 200, { 'X-Reached': 'login' }))
app.get('/api/v1/export/:id', (context) => context.text('reached', 200, { 'X-Reached': 'export' }))
app.all('/admin/*', (context) => context.text('reached', 200, { 'X-Reached': 'admin' }))
serve({ fetch: app.fetch, port: Number(process.env.PORT), hostname: '127.0.0.1' })
