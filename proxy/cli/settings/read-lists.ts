import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { listFilesOf } from '../../config/clients/list-files.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { ListFile } from '../../policy.ts'
import type { AddressList, AddressLists } from '../../request/addresses/lists/address-lists.ts'
import {
  problemOfFile,
  problemsOfList,
  warnOfEverybody,
  warnOfNat64,
} from '../../request/addresses/lists/list-problems.ts'
import { readList, type ReadList } from '../../request/addresses/lists/read-list.ts'
import { SortedRanges } from '../../request/addresses/lists/sorted-ranges.ts'

/**
 * Reads the lists of addresses that settings name. It is synchronous, for programs that serve no requests.
 *
 * @returns the lists, and warnings
 * @throws SettingsError with every invalid line
 */
export function readListsOf(settings: Pick<GatewaySettings, 'allowList' | 'denyList' | 'rules'>): {
  readonly lists: AddressLists
  readonly warnings: readonly string[]
} {
  const read = new Map<string, AddressList>()
  const problems: string[] = []
  const warnings: string[] = []
  for (const { file, location } of listFilesOf(settings)) {
    const found = readOrExplain({ file, location })
    if (typeof found === 'string') problems.push(found)
    else if ('data' in found) {
      read.set(location, new SortedRanges(found.data))
      if (found.everybody !== undefined) warnings.push(warnOfEverybody(file, found.everybody))
      if (found.missesNat64) warnings.push(warnOfNat64(file, found.missesNat64))
    } else problems.push(...problemsOfList(file, found))
  }
  if (problems.length > 0) throw new SettingsError(problems)
  return {
    warnings,
    lists: {
      of(location) {
        const list = read.get(location)
        if (!list) throw new Error(`the list ${location} was not read`)
        return list
      },
    },
  }
}

function readOrExplain({ file, location }: ListFile): ReadList | string {
  try {
    return readList(location)
  } catch (error) {
    return problemOfFile(file, error)
  }
}
