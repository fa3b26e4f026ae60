import { keepCrowd } from './crowd.ts'

// Clients that each keep an event stream open and read all of it. This is not an attack, but 5,000 open pages of a web application.

/** The backend sends an event every 10 s. */
const maxPauseMs = 15_000
/** The time of the last event of each open stream. */
const lastEventMs = new Map<object, number>()
let events = 0

keepCrowd(
  (socket) => {
    socket.setEncoding('latin1').on('data', (text: string) => {
      if (!text.includes('data:')) return
      events++
      lastEventMs.set(socket, performance.now())
    })
    socket.once('close', () => lastEventMs.delete(socket))
    socket.write('GET /events HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n')
  },
  () => {
    const sinceMs = performance.now() - maxPauseMs
    return { served: [...lastEventMs.values()].filter((atMs) => atMs > sinceMs).length, events }
  },
)
