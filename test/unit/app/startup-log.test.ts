import { expect, test } from 'vitest'
import { describeStart } from '../../../proxy/app/observe/startup-log.ts'
import { loadWithFile } from '../../support/gateway/settings.ts'

const routes = 'routes: [{ name: shop, paths: /shop/*, upstream: http://shop:8080 }]\n'
const lineOf = (file: string) => describeStart(loadWithFile(file, {}).settings, { port: 1, adminPort: 2 })

test.each([
  ['only upstream', 'upstream: http://app:80\n', { upstream: 'http://app' }],
  ['only routes', routes, { routes: 1 }],
  ['both', `upstream: http://app:81\n${routes}`, { upstream: 'http://app:81', routes: 1 }],
  ['neither', '', { upstream: 'http://127.0.0.1:3000' }],
])('the line names the backends that are used: %s', (_what, file, named) => {
  const { upstream, routes } = lineOf(file)
  expect({ ...(upstream !== undefined && { upstream }), ...(routes !== undefined && { routes }) }).toEqual(
    named,
  )
})
