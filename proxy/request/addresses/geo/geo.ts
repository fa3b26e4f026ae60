/** The field of a database: the country of an address, or its autonomous system. */
export type GeoField = 'country' | 'asn'

/** The value of addresses that are not in the database. */
export const UNKNOWN = 'unknown'

/** The current databases. They change with their files, so they are queried for each request. */
export type Geo = {
  /**
   * @param address canonical text
   * @returns for example `DE` or `AS64496`; `unknown` for an address that is not in the file
   */
  find(field: GeoField, address: string): string
}
