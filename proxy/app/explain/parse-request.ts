import type { IncomingMessage } from 'node:http'
import { duplexPair } from 'node:stream'
import type { Log } from '../../../shared/log.ts'
import { createClientServer } from '../server.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { readParserError } from '../../connection/parser-errors.ts'
import type { ClientRequest } from '../../http/messages.ts'

/** A request as the steps get it, or why they do not get it. */
export type ParsedRequest =
  | { readonly request: ClientRequest; readonly upgrades: boolean }
  | { readonly status: number; readonly why: string }

/**
 * Has the head of a request parsed by the server that serves clients, which is given a connection in memory: what Node's parser
 * makes of repeated headers, and what it refuses, is the same.
 *
 * @param head the request line and the headers, one character a byte
 */
export function parseRequest(settings: GatewaySettings, head: string, log: Log): Promise<ParsedRequest> {
  const { server } = createClientServer({ ...settings, tlsCertFile: undefined }, log)
  const [ours, theirs] = duplexPair()
  return new Promise<ParsedRequest>((resolve) => {
    const take = (request: IncomingMessage): void => resolve({ request, upgrades: false })
    server.on('request', take)
    server.on('checkContinue', take)
    server.on('checkExpectation', take)
    server.on('upgrade', (request: IncomingMessage) => resolve({ request, upgrades: true }))
    server.on('connect', () => resolve({ status: 405, why: 'CONNECT is not supported' }))
    server.on('clientError', (error: NodeJS.ErrnoException) => {
      const found = readParserError(error)
      resolve({ status: found?.reply.status ?? 400, why: found?.why ?? error.message })
    })
    server.emit('connection', theirs)
    ours.resume().write(head, 'latin1')
  }).finally(() => {
    ours.destroy()
    theirs.destroy()
    server.close()
  })
}
