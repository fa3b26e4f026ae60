import { describe, expect, test } from 'vitest'
import { findHost, parseHosts } from '../../../proxy/names/hosts-file.ts'

const text = `# comment
127.0.0.1 localhost
::1\tlocalhost ip6-localhost   # of this machine
10.0.0.7   App app.example.com
10.0.0.8 app
10.0.0.7 app
not-an-address name
10.0.0.9
10.0.0.10 commented # hidden\r
`

describe('the hosts file', () => {
  const hosts = parseHosts(text)

  test.each([
    ['localhost', ['127.0.0.1', '::1']],
    ['ip6-localhost', ['::1']],
    ['app', ['10.0.0.7', '10.0.0.8']],
    ['APP', ['10.0.0.7', '10.0.0.8']],
    ['app.example.com', ['10.0.0.7']],
    ['app.example.com.', ['10.0.0.7']],
    ['commented', ['10.0.0.10']],
    ['hidden', undefined],
    ['name', undefined],
    ['example.com', undefined],
    ['', undefined],
    ['__proto__', undefined],
  ])('%s has the addresses %j', (name, addresses) => {
    expect(findHost(hosts, name)).toEqual(addresses)
  })

  test.each(['localhost', 'LocalHost.', 'db.localhost'])(
    '%s is this machine without a line of its own',
    (name) => {
      expect(findHost(parseHosts(''), name)).toEqual(['127.0.0.1', '::1'])
    },
  )
})
