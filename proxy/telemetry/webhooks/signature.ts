import { createHmac } from 'node:crypto'

const prefix = 'whsec_'

/** The key of a secret as Standard Webhooks writes it: `whsec_`, and 24 to 64 bytes in base64. Undefined for any other text. */
export function webhookKey(secret: string): Buffer | undefined {
  if (!secret.startsWith(prefix)) return undefined
  const written = secret.slice(prefix.length)
  const key = Buffer.from(written, 'base64')
  const isWritten = key.toString('base64').replace(/=+$/, '') === written.replace(/=+$/, '')
  return isWritten && key.length >= 24 && key.length <= 64 ? key : undefined
}

/**
 * The headers that identify and sign a message (https://www.standardwebhooks.com): receivers refuse those whose time is not
 * about now, and take each id once.
 *
 * @param id the same for each attempt to deliver it
 * @param atMs wall clock, of this attempt
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
