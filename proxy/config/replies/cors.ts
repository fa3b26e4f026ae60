import { z } from 'zod'

const needsOrigin =
  "needs an origin such as https://app.example.com, in lower case and without a path, or '*' for all"

const origin = z.string(needsOrigin).refine(isOrigin, needsOrigin)

/** `cors`, as written: the origins whose pages may read local replies. */
export const cors = z.strictObject(
  {
    origins: z
      .array(origin, 'needs a list of origins, such as [https://app.example.com]')
      .min(1, 'needs at least one origin')
      .refine((origins) => new Set(origins).size === origins.length, 'needs each origin only once')
      .refine(
        (origins) => !origins.includes('*') || origins.length === 1,
        "needs '*' alone: it is every origin",
      )
      .meta({
        description: "Origins whose scripts can read responses of the gateway itself, or '*' for all.",
      }),
  },
  'needs a mapping with origins',
)

/** Whether the text is an origin as browsers write it: a scheme, a host, and a port other than the default. */
function isOrigin(text: string): boolean {
  if (text === '*') return true
  if (text.includes('*')) return false
  if (/^https?:/.test(text)) return URL.canParse(text) && new URL(text).origin === text
  // Origins of applications and browser extensions, such as capacitor://localhost.
  return /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]{1,253}(:[1-9][0-9]{0,4})?$/.test(text)
}
