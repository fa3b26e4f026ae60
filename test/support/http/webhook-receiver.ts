import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { atEndOfFile } from '../run/at-end.ts'

export type ReceivedWebhook = {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly event: {
    readonly type: string
    readonly timestamp: string
    readonly data: Record<string, unknown>
  }
}

export type WebhookReceiver = { readonly url: string; readonly received: readonly ReceivedWebhook[] }

/** @param answer answers each request, given how many came before it; 204 unless given */
export async function startWebhookReceiver(
  answer: (response: ServerResponse, before: number) => void = (response) => response.writeHead(204).end(),
): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = []
  const server = createServer((request, response) => {
    const { url: path = '', headers } = request
    void text(request).then((body) => {
      received.push({ path, headers, body, event: JSON.parse(body || '{}') as ReceivedWebhook['event'] })
      answer(response, received.length - 1)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  atEndOfFile(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, received }
}
