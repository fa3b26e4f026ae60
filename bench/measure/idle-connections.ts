import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { isComplete, openConnection } from './fixed-rate.ts'
import { familyOf, readResidentBytes } from './process-usage.ts'
import type { MemorySample } from '../report/results.ts'

/** Time for a server to become idle. */
const settleMs = 1_000
const openedAtATime = 50

/**
 * Resident memory of a server that has just started and has answered a few requests, and again when this many clients have had a response
 * each and keep their connections open.
 */
export async function measureMemory(
  pid: number,
  port: number,
  path: string,
  connections: number,
): Promise<MemorySample> {
  await sleep(settleMs)
  const rest = readResidentBytes(familyOf(pid))
  const sockets: Socket[] = []
  try {
    while (sockets.length < connections) {
      const count = Math.min(openedAtATime, connections - sockets.length)
      sockets.push(...(await Promise.all(Array.from({ length: count }, () => openAndAsk(port, path)))))
    }
    await sleep(settleMs)
    const closed = sockets.filter((socket) => socket.closed || socket.readableEnded).length
    if (closed > 0) throw new Error(`${closed} of ${connections} idle connections were closed`)
    const connectedBytes = sum(readResidentBytes(familyOf(pid)))
    return {
      processes: rest.length,
      restBytes: Math.max(...rest),
      connectedBytes,
      bytesPerConnection: (connectedBytes - sum(rest)) / connections,
    }
  } finally {
    for (const socket of sockets) socket.destroy()
  }
}

async function openAndAsk(port: number, path: string): Promise<Socket> {
  const socket = await openConnection(port)
  let received = ''
  socket.setEncoding('latin1')
  socket.on('error', () => undefined)
  socket.on('data', (text: string) => {
    received += text
    if (isComplete(received)) socket.emit('answered')
  })
  const answered = once(socket, 'answered')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
  await answered
  return socket
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
