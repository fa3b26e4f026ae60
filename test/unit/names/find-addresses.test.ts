import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { AskDns } from '../../../proxy/names/dns-query.ts'
import { createFinder, type FindAddresses } from '../../../proxy/names/find-addresses.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

type System = {
  readonly find: FindAddresses
  /** Names looked up in DNS, and with `getaddrinfo`. */
  readonly asked: string[]
  readonly systemAsked: string[]
  readonly write: (file: 'hosts' | 'resolv.conf' | 'nsswitch.conf', text: string) => void
}

/** @param reply the reply of DNS to any question: addresses, or a code of c-ares */
function setUp(
  reply: readonly string[] | string,
  systemReply: readonly string[] | string = 'ENOTFOUND',
): System {
  const directory = makeTemporaryDirectory()
  const asked: string[] = []
  const systemAsked: string[] = []
  const failing = (code: string): Promise<never> => Promise.reject(Object.assign(new Error(code), { code }))
  const ask: AskDns = (name, family) => {
    if (family === 4) asked.push(name)
    if (typeof reply === 'string') return failing(reply)
    return family === 4 ? Promise.resolve(reply.map((address) => ({ address, ttl: 60 }))) : failing('ENODATA')
  }
  const find = createFinder({
    hostsFile: join(directory, 'hosts'),
    resolvConf: join(directory, 'resolv.conf'),
    nsswitchConf: join(directory, 'nsswitch.conf'),
    createDnsClient: () => ask,
    hasOtherSources: false,
    systemLookup: (name) => {
      systemAsked.push(name)
      return typeof systemReply === 'string' ? failing(systemReply) : Promise.resolve(systemReply)
    },
  })
  return { find, asked, systemAsked, write: (file, text) => writeFileSync(join(directory, file), text) }
}

describe('the addresses of a name', () => {
  test('the addresses of a name are those of the hosts file, without a question', async () => {
    const { find, asked, write } = setUp(['10.0.0.1'])
    write('hosts', '10.0.0.2 app\n10.0.0.3 app\n')
    expect(await find('app')).toEqual({ addresses: ['10.0.0.2', '10.0.0.3'], forMs: 5_000 })
    expect(asked).toEqual([])
  })

  test('the addresses of a name are those of DNS, for as long as it says but half a minute', async () => {
    const { find } = setUp(['10.0.0.1'])
    expect(await find('app')).toEqual({ addresses: ['10.0.0.1'], forMs: 30_000 })
  })

  test('the addresses of a name follow a hosts file that changes while the process runs', async () => {
    const { find, write } = setUp(['10.0.0.1'])
    expect((await find('app')).addresses).toEqual(['10.0.0.1'])
    write('hosts', '10.0.0.2 app\n')
    expect((await find('app')).addresses).toEqual(['10.0.0.2'])
    write('hosts', '10.0.0.22 app\n')
    expect((await find('app')).addresses).toEqual(['10.0.0.22'])
  })

  test('the addresses of a name follow a resolv.conf that changes while the process runs', async () => {
    const { find, asked, write } = setUp('ENOTFOUND')
    write('resolv.conf', 'search a.test\n')
    await expect(find('app')).rejects.toThrow('ENOTFOUND')
    write('resolv.conf', 'search changed.test\n')
    await expect(find('app')).rejects.toThrow('ENOTFOUND')
    expect(asked).toEqual(['app.a.test', 'app', 'app.changed.test', 'app'])
  })

  test.each(['127.1', '2130706433', '0x7f.1', '127.0.0.1'])('%s is an address itself', async (name) => {
    const { find, asked } = setUp('ENOTFOUND')
    expect((await find(name)).addresses).toEqual(['127.0.0.1'])
    expect(asked).toEqual([])
  })

  test.each(['1.2.3.4.5', 'cafe1', 'a.b.0'])('%s is not an address', async (name) => {
    const { find, asked } = setUp(['10.0.0.1'])
    expect((await find(name)).addresses).toEqual(['10.0.0.1'])
    expect(asked).toEqual([name])
  })

  test('the addresses of a name are asked of getaddrinfo only where the system has other sources', async () => {
    const { find, systemAsked, write } = setUp('ENOTFOUND', ['10.0.0.9'])
    await expect(find('printer.local')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    expect(systemAsked).toEqual([])
    write('nsswitch.conf', 'hosts: files mdns4_minimal [NOTFOUND=return] dns\n')
    expect((await find('printer.local')).addresses).toEqual(['10.0.0.9'])
    expect(systemAsked).toEqual(['printer.local'])
  })

  test.each([
    ['ENOTFOUND', 'ENOTFOUND', 'ENOTFOUND'],
    ['ENOTFOUND', 'EAI_AGAIN', 'EAI_AGAIN'],
    ['ETIMEOUT', 'ENOTFOUND', 'EAI_AGAIN'],
  ])('with %s by DNS and %s by the system: %s', async (reply, systemReply, code) => {
    const { find, write } = setUp(reply, systemReply)
    write('nsswitch.conf', 'hosts: files dns myhostname\n')
    await expect(find('app')).rejects.toMatchObject({ code })
  })
})
