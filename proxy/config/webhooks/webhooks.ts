import { z } from 'zod'
import { webhookEvents } from '../../telemetry/webhooks/webhook-event.ts'

const needsUrl = 'needs an http:// or https:// URL, without a user, a password and a fragment'
const needsEvents = `needs a list, each entry one of ${webhookEvents.join(', ')}`
const MAX_WEBHOOKS = 10

const webhookFields = {
  url: z
    .string(needsUrl)
    .refine(isUrl, needsUrl)
    .meta({ description: 'URL that gets the events, by POST. Redirects are not followed.' }),
  events: z
    .array(z.enum(webhookEvents, needsEvents.replace('a list, each entry ', '')), needsEvents)
    .min(1, 'needs at least one event')
    .refine((events) => new Set(events).size === events.length, 'needs each event only once')
    .meta({ description: 'Events to send there.' }),
}

/** `webhooks`, as written. */
export const webhooks = z
  .array(z.strictObject(webhookFields, 'needs a mapping with url and events'), 'needs a list of webhooks')
  .max(MAX_WEBHOOKS, `needs at most ${MAX_WEBHOOKS} webhooks`)

function isUrl(text: string): boolean {
  if (!/^https?:\/\/[^/\\]/.test(text) || /[\s#]/.test(text) || !URL.canParse(text)) return false
  const { username, password } = new URL(text)
  return username === '' && password === ''
}
