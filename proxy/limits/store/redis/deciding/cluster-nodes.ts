import type { Charge } from '../../../limiter.ts'
import { errorCodeOf } from '../errors.ts'
import { inOneWrite, type RedisCluster, type RedisNode } from '../run-script.ts'

/**
 * Finds the node of a cluster that decides a request: the node that has all its counters, if there is one.
 *
 * Requests for one node share a command. Its keys are arguments, because keys that a command declares must be in one slot. The node reports
 * for each request whether it has the counters. If a slot has moved or is moving, the request is asked by itself, because the library
 * follows redirections of one slot.
 */
export function createClusterLanes(cluster: RedisCluster, keyOfCharge: (charge: Charge) => string) {
  const nodes = new Map<string, RedisNode>()
  /** False if the engine lets scripts use only declared keys. It then gets a command for each request. */
  let areKeysFree = true

  function nodeOfSlot(slot: number): RedisNode | undefined {
    const name = cluster.slots[slot]?.[0]
    if (name === undefined) return undefined
    const known = nodes.get(name)
    if (known?.status === 'ready') return known
    nodes.clear()
    for (const node of cluster.nodes('master')) nodes.set(`${node.options.host}:${node.options.port}`, node)
    const found = nodes.get(name)
    return found?.status === 'ready' ? found : undefined
  }

  return {
    laneOf(charges: readonly Charge[]): RedisNode | undefined {
      if (!areKeysFree) return undefined
      let node: RedisNode | undefined
      let partitionKey: string | undefined
      for (const charge of charges) {
        if (charge.partitionKey === partitionKey) continue
        const found = nodeOfSlot(slotOf(keyOfCharge(charge)))
        if (!found || (node && found !== node)) return undefined
        node = found
        partitionKey = charge.partitionKey
      }
      return node
    },
    isElsewhere(error: unknown): boolean {
      const code = errorCodeOf(error)
      if (code === 'UNDECLARED') areKeysFree = false
      return code === 'MOVED' || code === 'READONLY' || code === 'UNDECLARED'
    },
    together: (send: () => void): void => inOneWrite(cluster, send),
  }
}

/** The hash slot of a key: CRC16 of the text in its first braces, or of the whole key. */
export function slotOf(key: string): number {
  const open = key.indexOf('{')
  const close = open < 0 ? -1 : key.indexOf('}', open + 1)
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key
  let crc = 0
  for (const byte of Buffer.from(hashed)) crc = ((crc << 8) & 0xff_ff) ^ (crc16[(crc >> 8) ^ byte] ?? 0)
  return crc & 0x3f_ff
}

/** CRC-16/XMODEM: polynomial 0x1021. */
const crc16 = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x80_00 ? (crc << 1) ^ 0x10_21 : crc << 1
  return crc & 0xff_ff
})
