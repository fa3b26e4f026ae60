import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import {
  latestResponse,
  leaveHttp,
  oweResponse,
  owesNothing,
  requestsBeforeNext,
  settleResponse,
} from '../../../proxy/connection/pending-responses.ts'

/** A request that has arrived, after so many bytes of it. */
async function receive(bytes: string): Promise<[IncomingMessage, ServerResponse]> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  client.write(bytes)
  return (await once(server, 'request')) as [IncomingMessage, ServerResponse]
}

async function answer(response: ServerResponse): Promise<void> {
  response.end('done')
  await once(response, 'close')
}

test('a connection lets go of a response that is over', async () => {
  const [request, response] = await receive('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  oweResponse(request, response)
  expect(latestResponse(request.socket)).toBe(response)
  expect(owesNothing(request.socket)).toBe(false)
  expect(requestsBeforeNext(request.socket)).toBeUndefined()
  request.resume()
  await answer(response)
  expect(requestsBeforeNext(request.socket)).toBe(1)
  settleResponse(request, response, 1)
  expect(latestResponse(request.socket)).toBeUndefined()
  expect(owesNothing(request.socket)).toBe(true)
  expect(requestsBeforeNext(request.socket)).toBe(1)
  leaveHttp(request.socket)
  expect(requestsBeforeNext(request.socket)).toBeUndefined()
})

test('not while some of the request is still to come, and not of the next', async () => {
  const [request, response] = await receive('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1')
  oweResponse(request, response)
  await answer(response)
  settleResponse(request, response, 1)
  expect(latestResponse(request.socket)).toBe(response)
  expect(requestsBeforeNext(request.socket)).toBeUndefined()

  const [later, next] = await receive('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  oweResponse(later, next)
  later.resume()
  await answer(next)
  settleResponse(later, response, 1)
  expect(latestResponse(later.socket)).toBe(next)
  oweResponse(later, next)
  settleResponse(later, next, 1)
  expect(requestsBeforeNext(later.socket)).toBe(2)
})
