import { describe, expect, test } from 'vitest'
import { readTarget } from '../../../../proxy/request/target/target.ts'
import { createPathValues, pathValuesOfName } from '../../../../proxy/limits/rules/path-values.ts'

function valuesIn(path: string, name: string, ...patterns: string[]): readonly string[] {
  return valuesSentBy('GET', path, name, ...patterns)
}

function valuesSentBy(method: string, path: string, name: string, ...patterns: string[]): readonly string[] {
  const target = readTarget(method, path)
  if (typeof target === 'string') throw new Error(target)
  return createPathValues(patterns, name)(target)
}

describe('the value of a :name of a pattern', () => {
  test.each<[path: string, values: string[]]>([
    ['/users/7', ['7']],
    ['/users/%37', ['7']],
    ['/USERS/7/', ['7', '7']],
    ['//users//7', ['7']],
    ['/users/x/../7', ['7']],
    ['/users/Bob%20A', ['bob a']],
    ['/users/%42ob%20a', ['bob a']],
    ['/users/a+b', ['a+b']],
    ['/users/caf%C3%A9', ['cafe']],
    ['/users/7;x', ['7', '7;x']],
    ['/users/7%3Bx', ['7', '7%3bx']],
    ['/users/x7%20', ['x7', 'x7 ']],
    ['/users/x7.', ['x7', 'x7.']],
    ['/users/7%20', ['7']],
    ['/users/7.', ['7']],
    // Backends disagree here: one serves 8, another 7.
    ['/users/7;a%2F..%2F8', ['8', '7']],
    ['/users/', ['']],
  ])('%s', (path, values) => {
    expect(valuesIn(path, 'id', '/users/:id')).toEqual(expect.arrayContaining([...new Set(values)]))
    expect(valuesIn(path, 'id', '/users/:id')[0]).toBe(values[0])
  })

  test.each([
    ['anna.smith@example.org', ['anna.smith@example.org', 'anna.smith@example']],
    ['10.0.0.1', ['10.0.0.1', '10.0.0']],
    ['a.1.2.3.4.5.6.7.8.9', ['a.1.2.3.4.5.6.7.8.9', 'a.1.2.3.4.5.6.7.8']],
    ['%61.b.c', ['a.b.c', 'a.b']],
    // Windows ignores trailing dots.
    ['a..', ['a', 'a..', 'a.']],
  ])('is not cut at its first dots, with which other values begin: %s', (name, values) => {
    expect(new Set(valuesSentBy('PUT', `/files/${name}`, 'id', '/files/:id'))).toEqual(new Set(values))
  })

  test('the value of a :name is not read at the end of a path without the characters that some backends drop', () => {
    for (const path of ['/users/%E7%94%B0a', '/users/b+a', '/users/%20a%20b'])
      expect(valuesIn(path, 'id', '/users/:id')).not.toContain('a')
    expect(valuesIn('/users/%E7%94%B0a', 'id', '/users/:id')).toEqual(['田a'])
  })

  test('the value of a :name is read before an extension with several dots', () => {
    for (const path of ['/users/7/login.a.b', '/users/7/login..x', '/users/%37/login.a.b.c/'])
      expect(valuesSentBy('POST', path, 'id', '/users/:id/login')).toEqual(['7'])
  })

  test('the value of a :name is read by the pattern that matches', () => {
    const patterns = ['/users/:id', '/a%20b/x/:id', '/teams/:team/users/:id/*', '/:id/last']
    expect(valuesIn('/users/1', 'id', ...patterns)).toEqual(['1'])
    expect(valuesIn('/A%20b/x/2', 'id', ...patterns)).toEqual(['2'])
    expect(valuesIn('/teams/9/users/3', 'id', ...patterns)).toEqual(['3'])
    expect(valuesIn('/teams/9/users/3/4/5', 'id', ...patterns)).toEqual(['3'])
    expect(valuesIn('/6/last', 'id', ...patterns)).toEqual(['6'])
    expect(valuesIn('/7/identity', 'id', '/:idx/:id')).toEqual(['identity'])
  })

  test('the value of a :name is the same for all paths that no pattern matches', () =>
    expect(valuesIn('/a/b', 'id', '/users/:id')).toEqual(['']))

  test('the value of a :name is not read from a path that goes on after the pattern', () => {
    expect(valuesIn('/users/7/8', 'id', '/users/:id')).toEqual([''])
    expect(valuesIn('/users/7/8/9', 'id', '/users/:id/8')).toEqual([''])
  })

  test.each([
    ['7', ['7']],
    ['Bob A', ['bob a']],
    ['Bob%20A', ['bob a']],
    ['café', ['cafe']],
    ['100%', ['100%25']],
    ['group/project', ['group%2fproject']],
    ['group%2Fproject', ['group%2fproject']],
    ['..', []],
    ['', []],
    ['a;b', ['a', 'a;b', 'a%3bb']],
  ])('an operator writes %j', (text, values) => expect(pathValuesOfName(text)).toEqual(values))
})
