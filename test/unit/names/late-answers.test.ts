import { expect, test, vi } from 'vitest'
import { queryDns, type AskDns } from '../../../proxy/names/dns-query.ts'

/** Resolves when the wait for an answer about IPv6 ends. */
const patience = vi.hoisted(() => Promise.withResolvers<undefined>())

vi.mock('node:timers/promises', () => ({
  setTimeout: (_: number, value: unknown) => patience.promise.then(() => value),
}))

const settings = { search: [], ndots: 1, timeoutMs: 1, attempts: 1 }
const four = { address: '10.0.0.1', ttl: 60 }
const six = { address: 'fd00::1', ttl: 60 }

function askOf(ofIpv4: ReturnType<AskDns>, ofIpv6: ReturnType<AskDns>): AskDns {
  return (_, family) => (family === 4 ? ofIpv4 : ofIpv6)
}

test('IPv6 addresses wait for IPv4 however long that takes, and IPv4 ones do not wait for IPv6', async () => {
  const late = Promise.withResolvers<readonly (typeof four)[]>()
  const never = new Promise<never>(() => undefined)
  patience.resolve(undefined)
  const both = queryDns('app.test', settings, askOf(late.promise, Promise.resolve([six])))
  const onlyIpv4 = queryDns('app.test', settings, askOf(Promise.resolve([four]), never))
  // The result below shows that the first query has not given up by now.
  expect((await onlyIpv4).addresses).toEqual(['10.0.0.1'])
  late.resolve([four])
  expect((await both).addresses.toSorted()).toEqual(['10.0.0.1', 'fd00::1'])
})

test('IPv6 addresses are all there are where IPv4 is not answered', async () => {
  const silence = Promise.reject(Object.assign(new Error('silence'), { code: 'ETIMEOUT' }))
  const answer = await queryDns('app.test', settings, askOf(silence, Promise.resolve([six])))
  expect(answer.addresses).toEqual(['fd00::1'])
})
