import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Log } from '../../../shared/log.ts'

/** Maximum number of listeners: each holds a connection, and each event is written to all of them. */
const MAX_LISTENERS = 8
/** So often that with a look at the other replicas a refusal is shown within a second. */
const INTERVAL_MS = 500
/** Unread bytes of a listener: one that is a few events behind gets no more until it has read them. */
const MAX_UNREAD_BYTES = 1024 * 1024

export type LiveEvents = {
  /** Sends events until the client leaves. False where there are as many listeners as can be. */
  follow(request: IncomingMessage, response: ServerResponse): boolean
}

/**
 * Server-sent events (HTML, section 9.2): first one `history` event for each listener, then twice a second one `status` event
 * with everything, so that a listener that missed some, or comes again, needs none of them. Ids go on from `Last-Event-ID`,
 * also of a gateway that was restarted since. While nobody listens nothing is read.
 *
 * @param options.readStatus what an event has; called once for all listeners
 */
export function createLiveEvents(options: {
  readonly readStatus: () => Promise<object>
  readonly readHistory: () => Promise<object>
  readonly log: Log
}): LiveEvents {
  const { readStatus, readHistory, log } = options
  const listeners = new Set<ServerResponse>()
  /** Those whose past has not been read yet: it comes first. */
  const ungreeted = new Set<ServerResponse>()
  let timer: NodeJS.Timeout | undefined
  let lastId = 0
  let isReading = false

  const sendAll = (text: string): void => {
    for (const listener of listeners) {
      if (!ungreeted.has(listener) && listener.writableLength < MAX_UNREAD_BYTES) listener.write(text)
    }
  }

  const tick = async (): Promise<void> => {
    if (isReading) {
      sendAll(': waiting\n\n')
      return
    }
    isReading = true
    try {
      const data = JSON.stringify(await readStatus())
      sendAll(`id: ${++lastId}\nevent: status\ndata: ${data}\n\n`)
    } catch (err) {
      log.error({ err }, 'cannot read the status for the page')
      sendAll(': no status\n\n')
    } finally {
      isReading = false
    }
  }

  /** The history, then the current state. */
  const greet = async (listener: ServerResponse): Promise<void> => {
    try {
      listener.write(`event: history\ndata: ${JSON.stringify(await readHistory())}\n\n`)
    } catch (err) {
      log.error({ err }, 'cannot read the history for the page')
    } finally {
      ungreeted.delete(listener)
    }
    await tick()
  }

  return {
    follow(request, response) {
      if (listeners.size >= MAX_LISTENERS) return false
      lastId = Math.max(lastId, readId(request.headers['last-event-id']))
      response.writeHead(200, {
        'Content-Type': 'text/event-stream',
        'Cache-Control': 'no-store',
        'X-Content-Type-Options': 'nosniff',
        'X-Accel-Buffering': 'no',
      })
      if (request.method === 'HEAD') {
        response.end()
        return true
      }
      response.write('retry: 1000\n\n')
      listeners.add(response)
      ungreeted.add(response)
      response.once('close', () => {
        listeners.delete(response)
        if (listeners.size > 0) return
        clearInterval(timer)
        timer = undefined
      })
      timer ??= setInterval(() => void tick(), INTERVAL_MS)
      void greet(response)
      return true
    },
  }
}

function readId(text: unknown): number {
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : 0
}
