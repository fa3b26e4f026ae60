import { expect, test } from 'vitest'
import { errorText } from '../../../shared/error-text.ts'

const attempts = [new Error('connect ECONNREFUSED ::1:80'), new Error('connect ECONNREFUSED 127.0.0.1:80')]
const both = 'connect ECONNREFUSED ::1:80, connect ECONNREFUSED 127.0.0.1:80'

test.each([
  [new Error('a message'), 'a message'],
  [new AggregateError(attempts), both],
  [new TypeError('fetch failed', { cause: new AggregateError(attempts) }), both],
  [new TypeError('fetch failed'), 'fetch failed'],
  [Object.assign(new Error(''), { code: 'ECONNRESET' }), 'ECONNRESET'],
  [new RangeError(''), 'RangeError'],
  [new AggregateError([]), 'AggregateError'],
  ['thrown as it is', 'thrown as it is'],
])('the text of %j is %s', (error, text) => {
  expect(errorText(error)).toBe(text)
})
