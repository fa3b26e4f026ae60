import { z } from 'zod'
import type { ListFile } from '../../policy.ts'
import { parseAddressRange } from '../../request/addresses/ip-address.ts'
import { namedNetworks } from '../../request/addresses/trusted-proxies.ts'

/** Addresses and CIDRs, and files with further ones. */
export type AddressItems = { readonly ranges: readonly string[]; readonly files: readonly ListFile[] }

const names = [...namedNetworks.keys()].toSorted().join(', ')
const needsItem = `needs an IP address, a CIDR such as 10.0.0.0/8, a name of networks (${names}), or { file: PATH }`
const needsPath = 'needs the path of a file'

export const listPath = z.string(needsPath).min(1, needsPath)

/** A file, as written. Its location is resolved later, from the folder of the settings file. */
export function listFile(file: string): ListFile {
  return { file, location: file }
}

const text = z
  .string(needsItem)
  .refine((item) => namedNetworks.has(item) || parseAddressRange(item) !== undefined, needsItem)
  .transform((item): AddressItems => ({ ranges: namedNetworks.get(item) ?? [item], files: [] }))
  .meta({ description: 'An IP address, a CIDR, or a name of networks.' })

const fileItem = z
  .strictObject({
    file: listPath.meta({ description: 'File with one address or CIDR a line, read again when it changes.' }),
  })
  .transform(({ file }): AddressItems => ({ ranges: [], files: [listFile(file)] }))

const item = z.union([text, fileItem], needsItem)

/** Accepts an address, a CIDR, a name of networks or a file, or a list of them. */
export const addressItems = z
  .union([z.array(item).min(1, 'needs at least one entry'), item.transform((only) => [only])])
  .transform((items): AddressItems => ({
    ranges: items.flatMap(({ ranges }) => ranges),
    files: items.flatMap(({ files }) => files),
  }))
