import { createHmac } from 'node:crypto'

const prefix = 'whsec_'

/** Returns the key of a secret in the format of Standard Webhooks: `whsec_`, and 24 to 64 bytes in base64. Undefined for any other text. */
export function webhookKey(secret: string): Buffer | undefined {
  if (!secret.startsWith(prefix)) return undefined
  const written = secret.slice(prefix.length)
  const key = Buffer.from(written, 'base64')
  const isWritten = key.toString('base64').replace(/=+$/, '') === written.replace(/=+$/, '')
  return isWritten && key.length >= 24 && key.length <= 64 ? key : undefined
}

/**
 * Returns the headers that identify and sign a message (https://www.standardwebhooks.com). Receivers refuse messages whose time differs
 * much from their clock, and accept each id once.
 *
 * @param id the id of the message, the same for each attempt to deliver it
 * @param atMs the wall-clock time of this attempt
 */
export function signedHeaders(key: Buffer, id: string, atMs: number, body: string): Record<string, string> {
  const timestamp = String(Math.floor(atMs / 1000))
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  }
}
