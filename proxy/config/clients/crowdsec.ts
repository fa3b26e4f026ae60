import { resolve } from 'node:path'
import { z } from 'zod'
import { duration, filePath } from '../../../shared/settings/kinds.ts'
import { problemAt, reasonOf, type PlaceOf, type Problem } from '../../../shared/settings/problems.ts'
import { readRegularFileSync } from '../../../shared/settings/regular-file.ts'
import { showSecretPath } from '../../../shared/settings/secret-path.ts'
import { keyIn, type CrowdsecSettings } from '../../limits/clients/crowdsec/local-api.ts'

const needsUrl =
  'needs the http:// or https:// URL of a local API, such as http://127.0.0.1:8000, without a user, a query and /v1'

const crowdsecFields = {
  url: z
    .string(needsUrl)
    .refine(isUrl, needsUrl)
    .transform((url) => url.replace(/\/+$/, ''))
    .meta({ description: 'URL of the local API of CrowdSec.' }),
  keyFile: filePath.schema.meta({ description: 'File with the API key of a bouncer.' }),
  every: duration('1s', '1h', ['s', 'm', 'h'])
    .schema.prefault('10s')
    .meta({ description: 'Interval between two polls.' }),
}

/** `crowdsec`, as written. */
export const crowdsec = z
  .strictObject(crowdsecFields, 'needs a mapping with url and keyFile')
  .transform(({ url, keyFile, every }): CrowdsecSettings => ({ url, keyFile, everyMs: every }))

/** The settings, with the absolute path of the key. */
export function locateCrowdsecKey(
  crowdsec: CrowdsecSettings | undefined,
  folder: string,
): CrowdsecSettings | undefined {
  return crowdsec && { ...crowdsec, keyFile: resolve(folder, crowdsec.keyFile) }
}

/** Finds a missing key. Does not check whether CrowdSec accepts the key, because its API may not be available yet. */
export function checkCrowdsecKey(
  crowdsec: CrowdsecSettings | undefined,
  placeOf: PlaceOf,
  folder: string,
): Problem[] {
  if (!crowdsec) return []
  const place = placeOf(['crowdsec', 'keyFile'])
  const what = `got ${showSecretPath(crowdsec.keyFile, folder)}, needs a file with the API key of a bouncer`
  try {
    const key = keyIn(readRegularFileSync(resolve(folder, crowdsec.keyFile)).toString())
    return key === undefined ? [problemAt(place, `${what} in one line`)] : []
  } catch (error) {
    return [problemAt(place, `${what} (${reasonOf(error)})`)]
  }
}

function isUrl(text: string): boolean {
  if (!/^https?:\/\/[^/\\]/.test(text) || /[\s#?]/.test(text) || !URL.canParse(text)) return false
  const { username, password, pathname } = new URL(text)
  return username === '' && password === '' && !/\/v1\/?$/.test(pathname)
}
