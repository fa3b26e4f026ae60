import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeMmdb } from '../geo/mmdb.ts'
import { makeTemporaryDirectory } from '../run/temporary-directory.ts'

/** The secret in the file `tokenSecret`. */
export const TOKEN_SECRET = 'a secret that is long enough for HMAC with SHA-256'

/** Paths of files that a table can name. */
export type TableFiles = {
  readonly tokenSecret: string
  /** Addresses. */
  readonly list: string
  readonly country: string
  readonly asn: string
}

/** Writes these files into a new folder, which is removed at the end of the test file. */
export function writeTableFiles(): TableFiles {
  const folder = makeTemporaryDirectory()
  const write = (name: string, content: string | Buffer): string => {
    const path = join(folder, name)
    writeFileSync(path, content)
    return path
  }
  const countries = {
    '127.0.0.2/32': { country: { iso_code: 'DE' } },
    '192.0.2.0/24': { country: { iso_code: 'FR' } },
  }
  return {
    tokenSecret: write('token-secret', TOKEN_SECRET),
    list: write('list.txt', '# some networks\n127.0.0.2\n192.0.2.0/28 # and more\n2001:db8::/64\n'),
    country: write('country.mmdb', writeMmdb(countries)),
    asn: write('asn.mmdb', writeMmdb({ '127.0.0.0/29': { autonomous_system_number: 64496 } })),
  }
}
