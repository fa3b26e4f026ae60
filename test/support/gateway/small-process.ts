import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { handleUncaughtExceptions } from '../../../shared/uncaught-exceptions.ts'
import { createLog } from '../../../shared/log.ts'
import { closeOnSignal } from '../../../shared/shutdown.ts'

// A process with only a log, the handler of uncaught exceptions, and shutdown. Requests over HTTP make it throw, log or exit. It prints its
// port on standard error, as standard output is under test.

const log = createLog('small', 'info')
let uncaught = 0
let heldOpen: NodeJS.Timeout | undefined

const deeds: Record<string, (query: URLSearchParams) => unknown> = {
  '/throw': () =>
    setImmediate(() => {
      throw new Error('thrown in vain')
    }),
  '/reject': () => {
    void Promise.reject(new Error('rejected in vain'))
  },
  '/log': (query) => {
    const filler = 'x'.repeat(Number(query.get('bytes') ?? 0))
    for (let line = 0; line < Number(query.get('lines')); line++) log.info({ line, filler }, 'numbered')
  },
  '/exit': (query) => process.exit(Number(query.get('status'))),
  '/hold': () => (heldOpen = setInterval(() => heldOpen, 1000)),
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
  deeds[pathname]?.(searchParams)
  response.end(JSON.stringify({ uncaught, memory: process.memoryUsage().rss }))
})

server.listen(0, '127.0.0.1', () => {
  handleUncaughtExceptions(log, () => uncaught++)
  closeOnSignal(
    {
      close: async () => {
        if (process.env['CLOSE'] === 'never') await new Promise(() => undefined)
        if (process.env['CLOSE'] === 'fails') throw new Error('cannot close')
        server.close()
        server.closeAllConnections()
      },
    },
    log,
  )
  process.stderr.write(`port ${(server.address() as AddressInfo).port}\n`)
})
