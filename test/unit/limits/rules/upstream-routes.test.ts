import { expect, test } from 'vitest'
import { compileRoutes, type UpstreamRoute } from '../../../../proxy/limits/rules/upstream-routes.ts'
import { readTarget } from '../../../../proxy/request/target/target.ts'
import { doAtOnce } from '../../../../shared/steps.ts'

type Written = Pick<UpstreamRoute, 'hosts' | 'paths'>

function findIn(routes: readonly Written[]): (target: string, host?: string) => number | undefined {
  const table = doAtOnce(compileRoutes(routes, [...routes.keys()]))
  return (raw, host = 'example.com') => {
    const target = readTarget('GET', raw)
    if (typeof target === 'string') throw new Error(target)
    return table.find(target, host)
  }
}

test('the first route that matches is found, by host and path', () => {
  const find = findIn([
    { hosts: ['api.example.com'], paths: ['/v1/*', '/v2/:id'] },
    { paths: ['/v1/files/*'] },
    { hosts: ['*.example.com'] },
    { paths: ['/health'] },
  ])
  expect(find('/v1/files/x', 'api.example.com')).toBe(0)
  expect(find('/v1', 'API.example.com:8080')).toBe(0)
  expect(find('/v2/7?x', 'api.example.com')).toBe(0)
  expect(find('/v2/7/x', 'api.example.com')).toBe(2)
  expect(find('/v1/files/x', 'www.example.com')).toBe(1)
  expect(find('/health', 'www.example.com')).toBe(2)
  expect(find('/health', 'example.org')).toBe(3)
  expect(find('/', 'example.org')).toBeUndefined()
})

test('a path has its dot segments resolved, with any escapes, letter case and repeated slashes', () => {
  const find = findIn([{ paths: ['/admin/*'] }, {}])
  for (const spelling of ['//admin/x', '/a/../admin/x', '/%61dmin', '/ADMIN/x', '/admin//x;y'])
    expect(find(spelling), spelling).toBe(0)
  for (const other of ['/', '/administer', '/admin/../x', '/x/admin/', '/admin;v=1/x', '/admin%2fx'])
    expect(find(other), other).toBe(1)
})

test('a request is matched as quickly with ten thousand routes as with one', () => {
  const routes = [...Array(10_000).keys()].map((i) => ({ hosts: [`h${i}.example`], paths: [`/p${i}/*`] }))
  const find = findIn(routes)
  expect(find('/p9999/x', 'h9999.example')).toBe(9999)
  expect(find('/p9999/x', 'h9998.example')).toBeUndefined()
})
