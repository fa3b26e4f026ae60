import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { passes } from '../wait/passes.ts'

/**
 * A proxy in front of several servers that sends each command to the server that its first key hashes to, as predixy and twemproxy do. The
 * first key of a script decides for all its keys. Commands without a key go to the first server. Ends as the test ends.
 *
 * @param options.delayMs how long each command is held before it is sent on
 * @returns the port of the proxy
 */
export async function startShardingProxy(
  ports: readonly number[],
  { delayMs = 0 }: { readonly delayMs?: number } = {},
): Promise<number> {
  const shards = ports.map((port) => new Redis(port))
  const sockets = new Set<Socket>()
  const shardOf = ([name = '', first, , key]: readonly string[]): Redis | undefined => {
    const of = /^eval(sha)?$/i.test(name)
      ? key
      : /^(del|get|incr|set|lindex)$/i.test(name)
        ? first
        : undefined
    return shards[of === undefined ? 0 : hash(of) % shards.length]
  }
  const server = createServer((client) => {
    sockets.add(client)
    const read = createCommandReader()
    let last: Promise<unknown> = Promise.resolve()
    client
      .on('error', () => undefined)
      .on('data', (bytes: Buffer) => {
        for (const command of read(bytes.toString('latin1'))) {
          const reply = passes(delayMs).then(() => ask(shardOf(command), command))
          last = last.then(async () => client.write(await reply, 'latin1'))
        }
      })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
    for (const shard of shards) shard.disconnect()
  })
  return (server.address() as AddressInfo).port
}

async function ask(shard: Redis | undefined, [name = '', ...rest]: readonly string[]): Promise<string> {
  try {
    const bytes = rest.map((text) => Buffer.from(text, 'latin1'))
    return encode(await shard?.callBuffer(name, ...bytes))
  } catch (error) {
    return `-${error instanceof Error ? error.message : String(error)}\r\n`
  }
}

function encode(reply: unknown): string {
  if (Array.isArray(reply)) return `*${reply.length}\r\n${reply.map(encode).join('')}`
  if (typeof reply === 'number') return `:${reply}\r\n`
  if (!Buffer.isBuffer(reply)) return '$-1\r\n'
  return `$${reply.length}\r\n${reply.toString('latin1')}\r\n`
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0
  return value >>> 8
}

/** Returns a reader of RESP2 commands, which may arrive in pieces of any size. */
function createCommandReader(): (bytes: string) => string[][] {
  let pending = ''
  return (bytes) => {
    pending += bytes
    const commands: string[][] = []
    for (;;) {
      const command = readCommand(pending)
      if (!command) return commands
      commands.push(command.words)
      pending = pending.slice(command.length)
    }
  }
}

function readCommand(text: string): { readonly words: string[]; readonly length: number } | undefined {
  const head = /^\*(\d+)\r\n/.exec(text)
  if (!head) return undefined
  const words: string[] = []
  let at = head[0].length
  while (words.length < Number(head[1])) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(at, at + 16))
    if (!size) return undefined
    const start = at + size[0].length
    at = start + Number(size[1]) + 2
    if (text.length < at) return undefined
    words.push(text.slice(start, at - 2))
  }
  return { words, length: at }
}
