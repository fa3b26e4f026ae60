import { send, type GatewayProcess, type Reply } from './gateway.ts'

/** Sends a request to a gateway's admin listener as an operator on this machine does; a body is sent as JSON. */
export async function askOperator(
  { adminPort }: Pick<GatewayProcess, 'adminPort'>,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Omit<Reply, 'body'> & { readonly body: unknown }> {
  const reply = await send(adminPort, method, path, {
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return { ...reply, body: reply.body === '' ? undefined : JSON.parse(reply.body) }
}
