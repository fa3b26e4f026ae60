import Router from '@koa/router'
import Koa from 'koa'

const router = new Router()
const reached = (name) => (context) => {
  context.set('X-Reached', name)
  context.body = 'reached'
}
router.post('/login', reached('login'))
router.get('/api/v1/export/:id', reached('export'))
router.all('/admin/{*rest}', reached('admin'))
new Koa().use(router.routes()).listen(process.env.PORT, '127.0.0.1')
