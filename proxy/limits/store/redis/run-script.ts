import { createHash } from 'node:crypto'
import type { Cluster, Redis } from 'ioredis'
import { errorCodeOf } from './errors.ts'

/** A connection to Redis or Valkey: one server, the master that Sentinel names, or a cluster. */
export type RedisClient = RedisNode | RedisCluster

export type RedisCluster = Cluster

/** A connection to one server. */
export type RedisNode = Redis

export type RedisScript = { readonly source: string; readonly sha1: string }

/**
 * Runs a script by its digest, or by its text if Redis does not have the script: after a restart, a failover or a
 * `SCRIPT FLUSH`. A script that was not found has not been executed, so sending it again counts nothing twice.
 *
 * @param maySendText called before the text is sent; false if no request is waiting any more
 */
export async function runScript(
  redis: RedisClient,
  { source, sha1 }: RedisScript,
  keyCount: number,
  keysAndArguments: string[],
  maySendText: () => boolean = () => true,
): Promise<unknown> {
  try {
    return await redis.evalsha(sha1, keyCount, keysAndArguments)
  } catch (error) {
    if (errorCodeOf(error) !== 'NOSCRIPT' || !maySendText()) throw error
    return redis.eval(source, keyCount, keysAndArguments)
  }
}

/**
 * Sends the scripts to each server as soon as it is connected, ahead of the requests. If the first request had to send them,
 * it would take two round trips, which on a slow network is longer than a request may wait.
 *
 * @param scripts the scripts to load at each connection; without keys and with two empty arguments, they do nothing
 * @returns a function that loads one more script at once, on all current connections
 */
export function loadWhenConnected(
  redis: RedisClient,
  scripts: () => readonly RedisScript[],
): (script: RedisScript) => void {
  const load = (server: Redis, { source }: RedisScript): void =>
    void server.eval(source, 0, '', '').catch(() => undefined)
  onConnected(redis, (server) => scripts().forEach((script) => load(server, script)))
  return (script) => {
    for (const server of serversOf(redis)) if (server.status === 'ready') load(server, script)
  }
}

/**
 * Calls back with each server, including the replicas of a cluster, each time that it is connected, and at once with those that are
 * connected already. Returns a function that stops this.
 */
export function onConnected(redis: RedisClient, connected: (server: Redis) => void): () => void {
  let isStopped = false
  const watch = (server: Redis): void => {
    const report = (): void => {
      if (!isStopped) connected(server)
    }
    server.on('ready', report)
    if (server.status === 'ready') report()
  }
  if ('nodes' in redis) redis.on('+node', watch)
  serversOf(redis).forEach(watch)
  return () => void (isStopped = true)
}

function serversOf(redis: RedisClient): readonly Redis[] {
  return 'nodes' in redis ? redis.nodes('all') : [redis]
}

/** @param source Lua */
export function script(source: string): RedisScript {
  return { source, sha1: createHash('sha1').update(source).digest('hex') }
}

const undeclared = new WeakMap<RedisScript, RedisScript>()

/**
 * Returns the same script, but with the number of its keys and the keys as arguments, so that they may be in different slots of a node.
 * The script finds `KEYS.areSpread` set. Redis refuses keys of slots that the node does not serve.
 */
export function withUndeclaredKeys(declared: RedisScript): RedisScript {
  const known = undeclared.get(declared)
  if (known) return known
  const made = script(`
local given = ARGV
local KEYS, ARGV = {}, {}
local keyCount = tonumber(given[1]) or 0
for i = 1, keyCount do KEYS[i] = given[i + 1] end
KEYS.areSpread = true
for i = keyCount + 2, #given do ARGV[i - keyCount - 1] = given[i] end
${declared.source}`)
  undeclared.set(declared, made)
  return made
}

/**
 * Sends the commands that `send` issues with one write to each server. A write for each command would cost more than
 * everything else about the command.
 */
export function inOneWrite<Result>(redis: RedisClient, send: () => Result): Result {
  const servers = 'nodes' in redis ? redis.nodes('master') : [redis]
  const streams = servers.filter(({ status }) => status === 'ready').map(({ stream }) => stream)
  for (const stream of streams) stream.cork()
  try {
    return send()
  } finally {
    for (const stream of streams) stream.uncork()
  }
}
