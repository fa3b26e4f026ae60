import { expect, test } from 'vitest'
import { kindOf, type FailureKind, type ReportedError } from '../../tiers/failure.ts'

const cases: readonly (readonly [FailureKind, string, ReportedError])[] = [
  ['exact count', 'a number', { message: 'expected 31 to be 30', expected: '30', actual: '31' }],
  [
    'exact count',
    'numbers in a list',
    { message: '', expected: '[ 200, 429 ]', actual: '[ 200, 200, 429 ]' },
  ],
  ['exact count', 'a number in an object', { message: '', expected: '{ "r": 1 }', actual: '{ "r": 2 }' }],
  ['exact count', 'a status in a text', { message: '', expected: 'HTTP/1.1 429', actual: 'HTTP/1.1 200' }],
  ['other', 'texts', { message: 'expected', expected: 'a', actual: 'b' }],
  ['other', 'a bound', { message: 'expected 31 to be less than 30', expected: '30', actual: '31' }],
  ['other', 'a time-out', { message: 'Test timed out in 60000ms.' }],
  [
    'crash',
    'a gateway that its own check ended',
    { message: 'the process of hosted gateways ended with 70:' },
  ],
  ['crash', 'a gateway that a signal ended', { message: 'gateway ended with 139' }],
  ['leak', 'a file that left something', { message: 'left open at the end of the file:\n  1 × timer' }],
]

test.for(cases)('%s: %s', ([kind, , error]) => {
  expect(kindOf(error)).toBe(kind)
})
