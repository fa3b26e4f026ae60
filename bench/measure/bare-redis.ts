import { connect } from 'node:net'
import { once } from 'node:events'

export type BareRedis = {
  /** Sends `times` `INCR` commands in one write, each for another key. Resolves when all are answered. */
  increment(times: number): Promise<void>
  close(): void
}

/**
 * Counts without code of Sluice or of a library: the minimum that Redis needs for any program that sends requests as soon as they arrive.
 * No script runs, and nothing checks a quota or a window.
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
