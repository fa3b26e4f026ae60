import { connect } from 'node:net'
import { once } from 'node:events'

export type BareRedis = {
  /** Sends so many `INCR` in one write, each of another key. Resolves when all are answered. */
  increment(times: number): Promise<void>
  close(): void
}

/**
 * Counts without code of Sluice's or of a library: what Redis needs for any program that sends what arrives at once. No script runs, and
 * nothing looks at a quota or a window.
 */
export async function connectBare(port: number): Promise<BareRedis> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  const waiting: { replies: number; done: () => void }[] = []
  socket.on('data', (bytes: Buffer) => {
    for (const byte of bytes) {
      const [first] = waiting
      if (byte !== NEWLINE || !first || --first.replies > 0) continue
      waiting.shift()
      first.done()
    }
  })
  let sent = 0
  return {
    increment(times) {
      let text = ''
      for (let i = 0; i < times; i++) text += `INCR bare:${sent++ % 5_000}\r\n`
      return new Promise((done) => {
        waiting.push({ replies: times, done })
        socket.write(text)
      })
    },
    close: () => void socket.destroy(),
  }
}

const NEWLINE = 0x0a
