import { describe, expect, test } from 'vitest'
import { queryDns, type AskDns } from '../../../proxy/names/dns-query.ts'

const settings = { search: ['a.test', 'b.test'], ndots: 1, timeoutMs: 1, attempts: 1 }

type Reply = readonly string[] | 'ENOTFOUND' | 'ENODATA' | 'ETIMEOUT' | 'ESERVFAIL' | 'EREFUSED' | 'never'

/** A name server that knows these names, as `name/family`; other names do not exist. */
function serverOf(replies: Readonly<Record<string, Reply>>): {
  readonly ask: AskDns
  readonly asked: string[]
} {
  const asked: string[] = []
  const ask: AskDns = (name, family) => {
    if (family === 4) asked.push(name)
    const reply = replies[`${name}/${family}`] ?? 'ENOTFOUND'
    if (reply === 'never') return new Promise(() => undefined)
    if (typeof reply === 'string') return Promise.reject(Object.assign(new Error(reply), { code: reply }))
    return Promise.resolve(reply.map((address, i) => ({ address, ttl: 60 - i })))
  }
  return { ask, asked }
}

describe('a name is asked for in DNS', () => {
  test.each([
    ['both families', { 'app.a.test/4': ['10.0.0.1', '10.0.0.2'], 'app.a.test/6': ['fd00::1'] }, 3, 59],
    ['IPv4 only', { 'app.a.test/4': ['10.0.0.1'], 'app.a.test/6': 'ENODATA' }, 1, 60],
    ['IPv4, and nothing said of IPv6', { 'app.a.test/4': ['10.0.0.1'], 'app.a.test/6': 'never' }, 1, 60],
    ['IPv6, and an error for IPv4', { 'app.a.test/4': 'ESERVFAIL', 'app.a.test/6': ['fd00::1'] }, 1, 60],
  ] as const)('with %s', async (_, replies, count, ttlSeconds) => {
    const answer = await queryDns('app', settings, serverOf(replies).ask)
    expect(answer.addresses).toHaveLength(count)
    expect(answer.ttlSeconds).toBe(ttlSeconds)
  })

  test.each([
    ['app', { 'app/4': ['10.0.0.1'] }, ['app.a.test', 'app.b.test', 'app']],
    ['app', { 'app.b.test/4': ['10.0.0.1'] }, ['app.a.test', 'app.b.test']],
    [
      'app',
      { 'app.a.test/4': 'ENODATA', 'app.a.test/6': 'ENODATA', 'app/4': ['10.0.0.1'] },
      ['app.a.test', 'app.b.test', 'app'],
    ],
    // A timeout says nothing about the name, but a query for another domain would also time out.
    [
      'app',
      { 'app.a.test/4': 'ETIMEOUT', 'app.a.test/6': 'ETIMEOUT', 'app/4': ['10.0.0.1'] },
      ['app.a.test', 'app'],
    ],
    // If the servers of one domain are broken, that says nothing about the next domain.
    [
      'app',
      { 'app.a.test/4': 'ESERVFAIL', 'app.a.test/6': 'ESERVFAIL', 'app.b.test/4': ['10.0.0.1'] },
      ['app.a.test', 'app.b.test'],
    ],
    [
      'app',
      { 'app.a.test/4': 'EREFUSED', 'app.a.test/6': 'EREFUSED', 'app.b.test/4': ['10.0.0.1'] },
      ['app.a.test', 'app.b.test'],
    ],
    [
      'app',
      { 'app.a.test/4': 'ENODATA', 'app.a.test/6': 'ESERVFAIL', 'app.b.test/4': ['10.0.0.1'] },
      ['app.a.test', 'app.b.test'],
    ],
  ] as const)('%s by %j as %j', async (name, replies, expected) => {
    const server = serverOf(replies)
    expect((await queryDns(name, settings, server.ask)).addresses).toEqual(['10.0.0.1'])
    expect(server.asked).toEqual(expected)
  })

  test.each([
    [{}, 'ENOTFOUND'],
    [{ 'app/4': 'ENODATA', 'app/6': 'ENODATA' }, 'ENOTFOUND'],
    [{ 'app.a.test/4': 'ESERVFAIL', 'app.a.test/6': 'ENODATA' }, 'EAI_AGAIN'],
    [{ 'app/4': 'ENODATA', 'app/6': 'ETIMEOUT' }, 'EAI_AGAIN'],
    [{ 'app/4': 'ETIMEOUT', 'app/6': 'ETIMEOUT' }, 'EAI_AGAIN'],
  ] as const)('without an address (%j): %s', async (replies, code) => {
    await expect(queryDns('app', settings, serverOf(replies).ask)).rejects.toMatchObject({
      code,
      hostname: 'app',
    })
  })
})
