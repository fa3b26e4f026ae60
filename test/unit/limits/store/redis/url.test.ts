import { describe, expect, test } from 'vitest'
import { describeRedis, parseRedisUrl } from '../../../../../proxy/limits/store/redis/connecting/url.ts'

const noOptions = {
  ca: undefined,
  cert: undefined,
  key: undefined,
  sentinelUsername: undefined,
  sentinelPassword: undefined,
}

const plain = {
  topology: 'standalone',
  tls: false,
  masterName: undefined,
  username: undefined,
  password: undefined,
  database: 0,
  options: noOptions,
}

const host = (name: string, port = 6379): { host: string; port: number } => ({ host: name, port })

describe('an address of Redis', () => {
  test.each([
    ['redis://redis', { hosts: [host('redis')] }],
    ['redis://10.0.0.5:6380/', { hosts: [host('10.0.0.5', 6380)] }],
    ['redis://[::1]:6379/3', { hosts: [host('::1')], database: 3 }],
    ['redis://[2001:db8::5]', { hosts: [host('2001:db8::5')] }],
    [
      'rediss://:s3cret@redis.example:6380/15',
      { tls: true, hosts: [host('redis.example', 6380)], password: 's3cret', database: 15 },
    ],
    ['redis://sluice:p%40ss%2Fw%3Ard@r', { hosts: [host('r')], username: 'sluice', password: 'p@ss/w:rd' }],
    ['redis://us%65r:a:b@r', { hosts: [host('r')], username: 'user', password: 'a:b' }],
    ['redis://user@r', { hosts: [host('r')], username: 'user' }],
    [
      'redis+sentinel://s1,s2:26380,[::1]:26381/mymaster',
      {
        topology: 'sentinel',
        hosts: [host('s1', 26379), host('s2', 26380), host('::1', 26381)],
        masterName: 'mymaster',
      },
    ],
    [
      'rediss+sentinel://u:p@s1:1/my%20master/7',
      {
        topology: 'sentinel',
        tls: true,
        hosts: [host('s1', 1)],
        masterName: 'my master',
        username: 'u',
        password: 'p',
        database: 7,
      },
    ],
    [
      'redis+cluster://n1:7000,n2:7001,n3',
      { topology: 'cluster', hosts: [host('n1', 7000), host('n2', 7001), host('n3')] },
    ],
    [
      'rediss+cluster://:pw@[::1]:7000/0',
      { topology: 'cluster', tls: true, hosts: [host('::1', 7000)], password: 'pw' },
    ],
    [
      'rediss://r/1?ca=/run/secrets/ca.pem&cert=a%20b.pem&key=k%26.pem',
      {
        tls: true,
        hosts: [host('r')],
        database: 1,
        options: { ...noOptions, ca: '/run/secrets/ca.pem', cert: 'a b.pem', key: 'k&.pem' },
      },
    ],
    [
      'redis+sentinel://:p@s1/main?sentinelUsername=u&sentinelPassword=a=b',
      {
        topology: 'sentinel',
        hosts: [host('s1', 26379)],
        masterName: 'main',
        password: 'p',
        options: { ...noOptions, sentinelUsername: 'u', sentinelPassword: 'a=b' },
      },
    ],
    ['REDIS+Cluster://n1', { topology: 'cluster', hosts: [host('n1')] }],
  ])('an address of Redis is read from %s', (url, expected) => {
    expect(parseRedisUrl(url)).toEqual({ ...plain, ...expected })
  })

  test.each([
    ['http://redis', /^is not one of the forms redis:\/\//],
    ['redis', /^is not one of the forms redis:\/\//],
    ['redis+proxy://redis', /^is not one of the forms redis:\/\//],
    ['redis://redis?db=1', /^has an option other than ca, cert, key, sentinelUsername, sentinelPassword$/],
    ['rediss://redis?ca', /^needs one value for its option ca$/],
    ['rediss://redis?ca=a&ca=b', /^needs one value for its option ca$/],
    ['rediss://redis?ca=%zz', /^has a broken percent escape in the option ca$/],
    ['redis://', /^has "" where a host and port are needed/],
    ['redis://redis:0', /^has "redis:0" where a host and port/],
    ['redis://redis:65536', /^has "redis:65536" where a host and port/],
    ['redis://::1', /^has "::1" where a host and port/],
    ['redis://a,b', /^names several hosts: only redis\+sentinel:\/\/ and redis\+cluster:\/\/ can$/],
    ['redis://redis/x', /^has "x" where the number of a database is needed$/],
    ['redis+sentinel://s1', /^lacks the name of the master/],
    ['redis+cluster://n1/1', /^names a database: a cluster has database 0 only$/],
    ['redis://u:%zz@r', /^has a broken percent escape in the password$/],
    ['rediss://r?ca=a@b.pem', /^has an @ after a \?: write %40 for it, and in a password %3F for the \?$/],
    ['rediss://:p@r/1?ca=a@b.pem', /^has an @ after a \?/],
    ['redis+sentinel://s1/main?sentinelPassword=p@ss', /^has an @ after a \?/],
    ['redis://:p?ss@r', /^has an @ after a \?/],
  ])('an address of Redis is not %s', (url, message) => {
    expect(() => parseRedisUrl(url)).toThrow(message)
  })

  test('an address of Redis never shows the login', () => {
    for (const [url, shown] of [
      ['rediss://user:s3cret@[::1]:6380/2', 'rediss://[::1]:6380/2'],
      ['redis+sentinel://:s3cret@a,b/main', 'redis+sentinel://a:26379,b:26379/main'],
      ['redis+cluster://user:s3cret@a', 'redis+cluster://a:6379'],
      ['redis+sentinel://a/main?sentinelPassword=s3cret', 'redis+sentinel://a:26379/main'],
    ] as const) {
      expect(describeRedis(parseRedisUrl(url))).toBe(shown)
    }
    for (const url of [
      'redis://user:s3cret@',
      'redis://user:s3cret@a,b',
      'redis://s3cret%zz@r',
      'x://:s3cret@r',
      'redis://:s3?s3cret@r',
      'redis+sentinel://s1/main?sentinelPassword=s3cret@x',
    ]) {
      try {
        parseRedisUrl(url)
        expect.unreachable(url)
      } catch (error) {
        expect(String(error)).not.toContain('s3cret')
      }
    }
  })
})
