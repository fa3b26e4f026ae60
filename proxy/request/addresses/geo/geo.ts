/** What a file says of addresses: the country they are in, or the autonomous system that they belong to. */
export type GeoField = 'country' | 'asn'

/** Where a file has nothing for an address. */
export const UNKNOWN = 'unknown'

/** The databases in force. What they have changes with their files, so they are asked for each request. */
export type Geo = {
  /**
   * @param address canonical text
   * @returns such as `DE` or `AS64496`; `unknown` for an address that the file does not have
   */
  find(field: GeoField, address: string): string
}
