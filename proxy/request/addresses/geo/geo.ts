/** The field of a database: the country of an address, or its autonomous system. */
export type GeoField = 'country' | 'asn'

/** The value of an address that the database does not have. */
export const UNKNOWN = 'unknown'

/** The current databases. What they have changes with their files, so they are asked for each request. */
export type Geo = {
  /**
   * @param address canonical text
   * @returns such as `DE` or `AS64496`; `unknown` for an address that the file does not have
   */
  find(field: GeoField, address: string): string
}
