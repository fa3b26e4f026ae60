import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { watch } from 'node:fs'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, test } from 'vitest'
import { checkNothingLeft } from '../../support/leaks/check.ts'
import { listResources, peerOf } from '../../support/leaks/resources.ts'
import { eventually } from '../../support/wait/eventually.ts'

type Leak = { readonly leave: () => unknown; readonly named: RegExp }

const nothing = (): void => undefined
let timer: NodeJS.Timeout | undefined

const closedByCheck: Readonly<Record<string, Leak>> = {
  'a server': {
    leave: () => once(createServer().listen(0, '127.0.0.1'), 'listening'),
    named: /server at .*"port":\d+/,
  },
  'both ends of a connection': {
    async leave() {
      const server = createServer().listen(0, '127.0.0.1')
      await once(server, 'listening')
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
      await Promise.all([once(socket, 'connect'), once(server, 'connection')])
      server.close()
    },
    named: /(?:socket from 127\.0\.0\.1:\d+ to 127\.0\.0\.1:\d+\s*){2}/,
  },
  'a socket that does not read and has lost its peer': {
    async leave() {
      const server = createServer().listen(0, '127.0.0.1')
      const accepted = once(server, 'connection')
      await once(server, 'listening')
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').pause()
      const [[peer]] = (await Promise.all([accepted, once(socket, 'connect')])) as [[Socket], unknown]
      // Once code has read the address, as a library may, Node returns the same one permanently.
      expect(socket.remoteAddress).toBe('127.0.0.1')
      peer.resetAndDestroy()
      await once(peer, 'close')
      await new Promise((resolve) => server.close(resolve))
      await eventually('the reset has reached the socket', () => expect(peerOf(socket)).toBeUndefined())
      expect(socket.destroyed).toBe(false)
    },
    named: /socket, of port \d+ without a peer, paused, 0 bytes read, 0 written/,
  },
  'a child process': {
    leave: () => spawn(process.execPath, ['-e', 'setInterval(() => 0, 1000)'], { stdio: 'ignore' }),
    named: /child process \d+: .* -e setInterval/,
  },
}
const closedHere: Readonly<Record<string, Leak & { readonly close: () => unknown }>> = {
  'a timer': {
    leave: () => (timer = setTimeout(nothing, 60_000)),
    named: /1 × timer/,
    close: () => clearTimeout(timer),
  },
  'an interval': {
    leave: () => (timer = setInterval(nothing, 10)),
    named: /1 × timer/,
    close: () => clearInterval(timer),
  },
  'a listener of the process': {
    leave: () => process.on('SIGUSR2', nothing),
    named: /1 × process\.on\('SIGUSR2'\)/,
    close: () => process.off('SIGUSR2', nothing),
  },
}

test.for(Object.entries(closedByCheck))(
  '%s that is left is named, and closed',
  async ([, { leave, named }]) => {
    const before = listResources()
    await leave()
    await expect(checkNothingLeft(before, 0)).rejects.toThrow(named)
    await checkNothingLeft(before)
  },
)

test.for(Object.entries(closedHere))(
  'the leak check names %s that is left',
  async ([, { leave, named, close }]) => {
    const before = listResources()
    leave()
    await expect(checkNothingLeft(before, 0)).rejects.toThrow(named)
    close()
    await checkNothingLeft(before)
  },
)

test('resources that close soon are awaited, and earlier ones are not reported', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const before = listResources()
  setTimeout(nothing, 100)
  let turns = 0
  setImmediate(function again() {
    if (++turns < 5) setImmediate(again)
  })
  await checkNothingLeft(before)
  server.close()
})

test('the listeners of a library that listens to every signal are not a leak, and one more is', async () => {
  const before = listResources()
  for (const signal of ['SIGSYS', 'SIGTERM', 'SIGPWR']) process.on(signal, nothing)
  await checkNothingLeft(before, 0)
  process.on('SIGTERM', nothing)
  await expect(checkNothingLeft(before, 0)).rejects.toThrow("1 × process.on('SIGTERM')")
  for (const signal of ['SIGTERM', 'SIGSYS', 'SIGTERM', 'SIGPWR']) process.off(signal, nothing)
})

test('a resource that does not keep the process alive is not a leak', async () => {
  const before = listResources()
  const ticking = setInterval(nothing, 1_000).unref()
  const watcher = watch(import.meta.dirname, { persistent: false })
  await checkNothingLeft(before, 0)
  clearInterval(ticking)
  watcher.close()
})
