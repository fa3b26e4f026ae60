import { z } from 'zod'
import { needsText } from '../../../shared/settings/kinds.ts'
import type { KeySetPlace } from '../../limits/keys/tokens/load-key-set.ts'
import type { TokenSettings } from '../../limits/keys/tokens/tokens.ts'

const needsPlace = 'needs exactly one of jwksUrl, jwksFile and secretFile'
const needsUrl =
  'needs an https:// URL, or http:// on a network that nobody else can reach, without a user and a password'
const path = z.string('needs the path of a file').min(1, 'needs the path of a file')
const text = z.string({ error: needsText('a text', (value) => value !== '') }).min(1, 'needs a text')

const tokenFields = {
  jwksUrl: z
    .url({ protocol: /^https?$/, error: needsUrl })
    .refine(hasNoLogin, needsUrl)
    .optional()
    .meta({
      description: 'URL of the JSON Web Key Set of the issuer.',
    }),
  jwksFile: path.optional().meta({ description: 'File with a JSON Web Key Set.' }),
  secretFile: path.optional().meta({ description: 'File with a secret that is shared with the issuer.' }),
  issuer: text.optional().meta({ description: 'Required iss of a token.' }),
  audience: text.optional().meta({ description: 'Required aud of a token, alone or in a list.' }),
}

/** `jwt`, as written. */
export const tokenSettings = z
  .strictObject(tokenFields, 'needs a mapping with jwksUrl, jwksFile or secretFile')
  .transform((written, context): TokenSettings => {
    const { jwksUrl, jwksFile, secretFile, issuer, audience } = written
    const places: KeySetPlace[] = [
      ...(jwksUrl === undefined ? [] : [{ kind: 'url', url: jwksUrl } as const]),
      ...(jwksFile === undefined ? [] : [{ kind: 'file', path: jwksFile } as const]),
      ...(secretFile === undefined ? [] : [{ kind: 'secret', path: secretFile } as const]),
    ]
    const [place, ...others] = places
    if (place && others.length === 0) return { place, issuer, audience }
    context.issues.push({ code: 'custom', message: needsPlace, input: written })
    return z.NEVER
  })

/** `fetch` rejects a URL with a login, and its error quotes the whole URL. */
function hasNoLogin(text: string): boolean {
  const url = URL.parse(text)
  return !url?.username && !url?.password
}
