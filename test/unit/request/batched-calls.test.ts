import { expect, test } from 'vitest'
import { readTarget } from '../../../proxy/request/target/target.ts'

// The attack: tRPC calls each procedure that a path names, with commas between them. `/trpc/auth.login,auth.login?batch=1` matched no rule
// of `/trpc/auth.login`.

function readingsOf(raw: string): readonly string[] {
  const target = readTarget('POST', raw)
  return typeof target === 'string' ? [target] : [target.matchPath, ...target.otherMatchPaths]
}

test.each([
  '/api/trpc/auth.login,auth.login?batch=1',
  '/api/trpc/user.get,auth.login?batch=1',
  '/api/trpc/auth.login,user.get,user.list?x=y&batch=1',
  '/api/trpc/auth.login,?batch=1',
  '/api/trpc/,auth.login?batch=1',
  '/api/trpc/user.get%2Cauth.login?batch=1',
  '/api/trpc/user.get,auth.login?b%61tch=1',
  '/api//trpc/user.get,AUTH%2elogin/?batch=1',
  // tRPC calls what it knows of the names, which may have slashes.
  '/api/trpc/x/y,auth.login?batch=1',
  'http://a.example/api/trpc/user.get,auth.login?batch=1',
])('%s is read as each of its calls', (raw) => {
  expect(readingsOf(raw)).toContain('/api/trpc/auth.login')
})

test.each(['/users/1,2', '/users/1,2?page=3', '/users/1?batch=1', '/x,y/login?page=1'])(
  '%s is no batch',
  (raw) => expect(readingsOf(raw)).toHaveLength(1),
)

test('a call of a batch has no value for a :name, as extensions have none', () => {
  const target = readTarget('POST', '/users/1,2?batch=1')
  expect(target).toMatchObject({ matchPath: '/users/1,2', otherMatchPaths: ['/users/1', '/users/2', '/2'] })
  expect(typeof target !== 'string' && [...(target.shortened ?? [])]).toEqual(['/users/1', '/users/2', '/2'])
})

test('a batch with too many calls is rejected', () => {
  const calls = Array.from({ length: 500 }, (_, i) => `call${i}`).join()
  expect(readingsOf(`/trpc/${calls}?batch=1`)).toHaveLength(1000)
  expect(readingsOf(`${'/a'.repeat(100)}/${calls}?batch=1`)).toEqual([
    'the path can be read in too many ways',
  ])
  expect(readingsOf(`${'/a'.repeat(100)}/${calls}?x=1`)).toHaveLength(1)
})
