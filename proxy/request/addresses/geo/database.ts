import { Reader, type Response } from 'mmdb-lib'
import type { GeoField } from './geo.ts'

/** A database in MaxMind's format (MMDB 2.0), in memory. */
export type Database = {
  /**
   * @param address canonical text
   * @returns undefined if the database has no value for the address
   */
  find(address: string): string | undefined
}

/** Maximum size, because the database is kept in memory. Databases of countries and autonomous systems have about ten MiB. */
export const MAX_DATABASE_BYTES = 1024 ** 3
/** Maximum number of decoded records to cache. A file has a few hundred countries, or 80,000 autonomous systems. */
const MAX_DECODED = 10_000
/** Maximum number of addresses to look up in search of one with the field. */
const MAX_TRIED = 1000

/**
 * Opens a file of MaxMind, DB-IP, IPinfo or another vendor; their field names differ.
 *
 * @param bytes the whole file
 * @param onDamage called once, for the first address that cannot be looked up because the file is damaged; such addresses have no value
 * @throws Error if the file is incomplete, if its records do not have the field, or if a few lookups find damage
 */
export function openDatabase(
  bytes: Buffer,
  field: GeoField,
  onDamage: (error: unknown) => void = () => undefined,
): Database {
  const reader = openReader(bytes)
  const { ipVersion, searchTreeSize } = reader.metadata
  if (searchTreeSize + 16 > bytes.length) throw new Error('it is not a whole file in the MMDB format')
  const read = readers[field]
  const find = (address: string): string | undefined => {
    // A database for IPv4 only cannot look up IPv6 addresses.
    if (ipVersion === 4 && address.includes(':')) return undefined
    return read(reader.get(address))
  }
  if (hasOthers(reader, read)) throw new Error(`its records have no ${field}`)
  let isDamaged = false
  return {
    find(address) {
      try {
        return find(address)
      } catch (error) {
        if (!isDamaged) onDamage(error)
        isDamaged = true
        return undefined
      }
    },
  }
}

function openReader(bytes: Buffer): Reader<Response> {
  try {
    return new Reader(bytes, { cache: boundedCache() })
  } catch {
    throw new Error('it is not a whole file in the MMDB format')
  }
}

/** Whether addresses all over the Internet have records, but no record has the field. A file with few networks may have no such records. */
function hasOthers(reader: Reader<Response>, read: (record: unknown) => string | undefined): boolean {
  let records = 0
  for (let i = 1; i <= MAX_TRIED; i++) {
    // Evenly distributed numbers (a Weyl sequence).
    const bits = Math.imul(i, 0x9e3779b1) >>> 0
    const address = [bits >>> 24, (bits >>> 16) & 255, (bits >>> 8) & 255, bits & 255].join('.')
    const record = recordOf(reader, address)
    if (record === null) continue
    if (read(record) !== undefined) return false
    records += 1
  }
  return records > 0
}

function recordOf(reader: Reader<Response>, address: string): unknown {
  try {
    return reader.get(address)
  } catch (error) {
    throw new Error('it is damaged: a record cannot be decoded', { cause: error })
  }
}

const readers: Readonly<Record<GeoField, (record: unknown) => string | undefined>> = {
  country(record) {
    const country = memberOf(record, 'country')
    const registered = memberOf(record, 'registered_country')
    const codes = [
      memberOf(country, 'iso_code'),
      memberOf(registered, 'iso_code'),
      memberOf(record, 'country_code'),
      country,
    ]
    const code = codes.find((each) => typeof each === 'string' && /^[A-Za-z]{2}$/.test(each))
    return typeof code === 'string' ? code.toUpperCase() : undefined
  },
  asn(record) {
    const number = memberOf(record, 'autonomous_system_number') ?? memberOf(record, 'asn')
    const [, digits] = /^(?:AS)?([1-9]\d{0,9})$/i.exec(String(number)) ?? []
    return digits === undefined ? undefined : `AS${digits}`
  },
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}

/** Caches records by their position in the file. */
function boundedCache() {
  const known = new Map<string | number, unknown>()
  return {
    get: (key: string | number): unknown => known.get(key),
    set(key: string | number, value: unknown): void {
      if (known.size >= MAX_DECODED) known.clear()
      known.set(key, value)
    },
  }
}
