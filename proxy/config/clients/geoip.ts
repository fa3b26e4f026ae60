import { resolve } from 'node:path'
import { z } from 'zod'
import {
  problemAt,
  reasonOf,
  showValue,
  type Place,
  type PlaceOf,
  type Problem,
} from '../../../shared/settings/problems.ts'
import { readRegularFileSync } from '../../../shared/settings/regular-file.ts'
import type { ListFile, Rule } from '../../policy.ts'
import { singleParts } from '../../policy/partition.ts'
import { MAX_DATABASE_BYTES, openDatabase } from '../../request/addresses/geo/database.ts'
import type { GeoField } from '../../request/addresses/geo/geo.ts'
import { listFile, listPath } from './address-items.ts'

const needs = 'needs a mapping with country or asn, or both: { country: FILE.mmdb, asn: FILE.mmdb }'
const fields = ['country', 'asn'] as const

/** The databases that `geoip` names, as written and with absolute paths. */
export type GeoFiles = { readonly country?: ListFile; readonly asn?: ListFile }

/** `geoip`, as written. */
export const geoip = z
  .strictObject(
    {
      country: listPath
        .optional()
        .meta({ description: 'File in MMDB format with the countries of addresses.' }),
      asn: listPath.optional().meta({ description: 'File in MMDB format with their autonomous systems.' }),
    },
    needs,
  )
  .refine(({ country, asn }) => country !== undefined || asn !== undefined, needs)
  .transform(({ country, asn }): GeoFiles => ({
    ...(country !== undefined && { country: listFile(country) }),
    ...(asn !== undefined && { asn: listFile(asn) }),
  }))

/** Returns the files with absolute paths. */
export function locateGeo(files: GeoFiles | undefined, folder: string): GeoFiles | undefined {
  if (!files) return undefined
  const located = fields.flatMap((field) => {
    const named = files[field]
    return named ? [[field, { file: named.file, location: resolve(folder, named.file) }] as const] : []
  })
  return Object.fromEntries(located)
}

/** Finds files that are missing, damaged, or not databases of the right kind. */
export function findUnusableGeo(files: GeoFiles | undefined, placeOf: PlaceOf, folder: string): Problem[] {
  return fields.flatMap((field) => {
    const named = files?.[field]
    const why = named && whyUnusable(resolve(folder, named.file), field)
    if (why === undefined) return []
    const what = field === 'country' ? 'countries' : 'autonomous systems'
    const text = `got ${showValue(named?.file)}, needs an MMDB file with ${what} (${why})`
    return [problemAt(placeOf(['geoip', field]), text)]
  })
}

function whyUnusable(path: string, field: GeoField): string | undefined {
  try {
    openDatabase(readRegularFileSync(path, MAX_DATABASE_BYTES), field)
    return undefined
  } catch (error) {
    return reasonOf(error)
  }
}

type PlaceOfRule = (index: number, field: 'key' | 'when' | 'unless') => Place

/** Finds rules that need a database that `geoip` does not name. */
export function findWithoutGeo(
  rules: readonly Rule[] = [],
  files: GeoFiles | undefined,
  placeOf: PlaceOfRule,
): Problem[] {
  return [...rules.entries()].flatMap(([index, { policy, when = [], unless = [] }]) => {
    const find = (place: 'key' | 'when' | 'unless', all: readonly { readonly kind: string }[]): Problem[] =>
      fields.flatMap((field) =>
        all.some(({ kind }) => kind === field) && !files?.[field]
          ? [
              problemAt(
                placeOf(index, place),
                `has ${field}, needs a top-level geoip: { ${field}: FILE.mmdb }`,
              ),
            ]
          : [],
      )
    return [...find('key', singleParts(policy.partition)), ...find('when', when), ...find('unless', unless)]
  })
}

/** Warns of databases that no rule uses. */
export function warnOfIdleGeo(rules: readonly Rule[], files: GeoFiles, placeOf: PlaceOf): string[] {
  const used = new Set<string>(
    rules.flatMap(({ policy, when = [], unless = [] }) =>
      [...singleParts(policy.partition), ...when, ...unless].map(({ kind }) => kind),
    ),
  )
  return fields.flatMap((field) =>
    files[field] && !used.has(field)
      ? [
          `${placeOf(['geoip', field]).label}: has no effect, as no rule has ${field} in its key, when or unless`,
        ]
      : [],
  )
}
