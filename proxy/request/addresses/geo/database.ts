import { Reader, type Response } from 'mmdb-lib'
import type { GeoField } from './geo.ts'

/** A database in MaxMind's format (MMDB 2.0), in memory. */
export type Database = {
  /**
   * @param address canonical text
   * @returns undefined if it has nothing
   */
  find(address: string): string | undefined
}

/** Maximum size: the database is kept in memory; those of countries and autonomous systems have some ten MiB. */
export const MAX_DATABASE_BYTES = 1024 ** 3
/** Records that are kept decoded: a file has a few hundred countries, and 80,000 systems. */
const MAX_DECODED = 10_000
/** Addresses that are looked up for one that has the field. */
const MAX_TRIED = 1000

/**
 * Opens a file of MaxMind, DB-IP, IPinfo and others, which name their fields differently.
 *
 * @param bytes the whole file
 * @param onDamage called once, for the first address that cannot be looked up because the file is damaged; such addresses have nothing
 * @throws Error for a file that is not whole, one whose records do not have the field, and one with damage that a few lookups find
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
    // A database of IPv4 alone has no place for an IPv6 address.
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

/** Whether addresses all over the Internet have records, and none of these has the field. A file of a few networks may have none. */
function hasOthers(reader: Reader<Response>, read: (record: unknown) => string | undefined): boolean {
  let records = 0
  for (let i = 1; i <= MAX_TRIED; i++) {
    // Numbers that are spread evenly (Weyl).
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

/** Caches records by their place in the file. */
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
