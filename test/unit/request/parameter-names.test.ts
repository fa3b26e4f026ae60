import { expect, test } from 'vitest'
import { queryValues } from '../../../proxy/request/values/query-values.ts'

// The attack: ASP.NET and Grails read `model.user` as a member `user` of a parameter, and Spring reads `!user` as the default of `user`.
// With such a name, a client avoided rules by this parameter.

test.each(['m.user', 'M[User]', 'm%2Euser', '%6d%5Buser%5D', '!user', '%21m.user'])(
  'a member of a model, or a default value, counts as the parameter: %s',
  (name) => expect(queryValues(`/?b=1&${name}=abc`, 'user', 8)).toEqual(['abc']),
)

test.each(['m.users', 'm.x.user', 'm[0].user', 'm[]user', 'm.', 'm[', '.', '!', 'm!user', '.x.user'])(
  'another name does not: %s',
  (name) => expect(queryValues(`/?${name}=abc`, 'user', 8)).toEqual([]),
)

test.each(['user%5B%5D=[user]=abc', 'user[a=b]=abc', 'user[a=b%5D=abc'])(
  'a name ends after a bracket, escaped or not: %s',
  (query) => expect(queryValues(`/?${query}`, 'user', 8)).toContain('abc'),
)
