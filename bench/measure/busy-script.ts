import type { Redis } from 'ioredis'
import type { Charge } from '../../proxy/limits/limiter.ts'
import type * as keys from '../../proxy/limits/store/redis/keys.ts'
import type * as commands from '../../proxy/limits/store/redis/scripts/command.ts'
import { readCpuUs } from './redis-servers.ts'

const COMMANDS_IN_WRITE = 100

/**
 * Microseconds of Redis's CPU per decision when Redis never has to wait: commands with a fixed number of decisions follow one another on
 * one connection, a hundred in a write. The cost of waking up, and of reading and writing sockets, is then shared, and what remains is the
 * command and its script.
 *
 * @param options.keys, options.commands the modules of the measured gateway
 */
export async function measureScriptUs(options: {
  readonly redis: Redis
  readonly pid: number
  readonly seconds: number
  readonly decisionsInCommand: number
  readonly chargesOf: (request: number) => Charge[]
  readonly keys: Pick<typeof keys, 'createDescriber'>
  readonly commands: Pick<typeof commands, 'commandOf'>
}): Promise<number> {
  const { redis, pid, seconds, decisionsInCommand, chargesOf } = options
  const describe = options.keys.createDescriber('sluice:1')
  let asked = 0
  const nextCommand = (): ReturnType<typeof commands.commandOf> => {
    const requests = Array.from({ length: decisionsInCommand }, () => chargesOf(asked++))
    return options.commands.commandOf(requests, describe, () => '')
  }
  async function askMany(): Promise<void> {
    const replies: Promise<unknown>[] = []
    redis.stream.cork()
    for (let command = 0; command < COMMANDS_IN_WRITE; command++) {
      const { script, keys, args } = nextCommand()
      replies.push(redis.evalsha(script.sha1, keys.length, [...keys, ...args]))
    }
    redis.stream.uncork()
    await Promise.all(replies)
  }
  await redis.script('LOAD', nextCommand().script.source)
  for (let write = 0; write < 50; write++) await askMany()
  asked = 0
  const beforeUs = readCpuUs(pid)
  for (const endMs = performance.now() + seconds * 1000; performance.now() < endMs;) await askMany()
  return (readCpuUs(pid) - beforeUs) / asked
}
