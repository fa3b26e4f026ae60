import { once } from 'node:events'
import { connect, createServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { errors } from '../../../shared/error-replies.ts'
import type { ClientRequest, ClientResponse } from '../../../proxy/http/messages.ts'
import {
  breakOff,
  endResponse,
  flushHead,
  sendError,
  writeContinue,
  writeEarlyHints,
  writeHead,
} from '../../../proxy/http/reply.ts'

// Between the reset of a stream and its `close` the backend may answer: nothing that is written then may throw.

async function receive(method: string): Promise<[ClientRequest, ClientResponse & Http2ServerResponse]> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => {
    session.destroy()
    server.close()
  })
  const stream = session.request({ ':method': method, ':path': '/' }, { endStream: false })
  stream.on('error', () => undefined)
  const [request, response] = (await once(server, 'request')) as [Http2ServerRequest, Http2ServerResponse]
  // As the server's handler takes them.
  return [request as unknown as ClientRequest, response as unknown as ClientResponse & Http2ServerResponse]
}

const writes: [string, (request: ClientRequest, response: ClientResponse) => void][] = [
  ['103', (_, response) => writeEarlyHints(response, ['</a>; rel=preload'])],
  ['100', (_, response) => writeContinue(response)],
  ['a head', (_, response) => writeHead(response, 200, ['a', 'b', 'a', 'c'])],
  ['a head without more', (_, response) => flushHead(response)],
  ['a piece of a body', (_, response) => void response.write('piece')],
  ['the end of a body', (_, response) => endResponse(response, Buffer.from('end'))],
  ['an error', (request, response) => sendError(request, response, errors.badGateway)],
  ['its end', (_, response) => breakOff(response)],
]

for (const method of ['GET', 'HEAD', 'POST'])
  test.each(writes)(
    `%s to a ${method} whose stream is reset, and then gone, does not throw`,
    async (_, write) => {
      const [request, response] = await receive(method)
      const closed = new Promise((resolve) => response.stream.once('close', resolve))
      response.stream.close(8)
      expect(() => write(request, response)).not.toThrow()
      await closed
      expect(() => write(request, response)).not.toThrow()
    },
  )
