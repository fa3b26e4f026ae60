import type { IpAddress } from '../ip-address.ts'

/** A list of addresses from a file. It changes with the file, so it is queried for each request. */
export type AddressList = { has(address: IpAddress): boolean }

/** The address lists, by the absolute paths of their files. */
export type AddressLists = {
  /** @throws Error for a file that was not read */
  of(location: string): AddressList
  /** Addresses with a decision of CrowdSec; undefined without CrowdSec. */
  readonly crowdsec?: AddressList | undefined
}

/** Used if no list names a file. */
export const noAddressLists: AddressLists = {
  of(location) {
    throw new Error(`the list ${location} was not read`)
  },
}
