import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { createDnsClient } from '../../../proxy/names/dns-query.ts'
import { writeAnswer } from '../../support/network/dns-records.ts'

const settings = { search: [], ndots: 1, timeoutMs: 1_000, attempts: 1 }

/** Response codes (RFC 1035 section 4.1.1). */
const codes = { servfail: 2, nxdomain: 3, notimp: 4, refused: 5 } as const

type Reply = keyof typeof codes | 'silence' | 'address'

/** Starts a name server that answers all queries in the same way. */
async function startNameServer(
  reply: Reply,
): Promise<{ readonly place: string; readonly asked: () => number }> {
  const socket = createSocket('udp4')
  let asked = 0
  socket.on('message', (query, { port, address }) => {
    asked++
    if (reply === 'silence') return
    const answer = writeAnswer(query, reply === 'address' ? ['192.0.2.1'] : [], 60)
    if (reply !== 'address') answer[3] = codes[reply]
    socket.send(answer, port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  return { place: `127.0.0.1:${socket.address().port}`, asked: () => asked }
}

test.each<[Reply, Reply, string, number]>([
  ['servfail', 'address', '192.0.2.1', 1],
  ['refused', 'address', '192.0.2.1', 1],
  ['notimp', 'address', '192.0.2.1', 1],
  ['silence', 'address', '192.0.2.1', 1],
  ['servfail', 'nxdomain', 'ESERVFAIL', 1],
  ['servfail', 'refused', 'ESERVFAIL', 1],
  ['servfail', 'silence', 'ESERVFAIL', 1],
  ['nxdomain', 'address', 'ENOTFOUND', 0],
  ['address', 'servfail', '192.0.2.1', 0],
])('if the first name server answers with %s and the second with %s, the result is %s', async (...each) => {
  const [first, second, expected, askedSecond] = each
  const servers = await Promise.all([startNameServer(first), startNameServer(second)])
  const ask = createDnsClient(
    settings,
    servers.map(({ place }) => place),
  )
  const result = await ask('app.test', 4).then(
    (records) => records.map(({ address }) => address).join(),
    (error: unknown) => error instanceof Error && 'code' in error && error.code,
  )
  expect(result).toBe(expected)
  expect(servers.map(({ asked }) => asked())).toEqual([1, askedSecond])
})
