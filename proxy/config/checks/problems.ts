import { problemAt, type Problem } from '../../../shared/settings/problems.ts'
import type { ReadSettings } from '../../../shared/settings/settings.ts'
import { checkCrowdsecKey } from '../clients/crowdsec.ts'
import { findUnusableGeo, findWithoutGeo } from '../clients/geoip.ts'
import { findMissingLists } from '../clients/list-files.ts'
import { placeOfRule, type FileReading } from '../file/schema.ts'
import { hasPassword } from '../setting-kinds.ts'
import type { gatewayTable } from '../settings-table.ts'
import { findUnsigned } from '../webhooks/unsigned.ts'
import type { FolderOf } from './certificates.ts'
import { findDeniedAllowances, findIdleOverrides } from './client-lists.ts'
import { findUndecidable } from './decisions.ts'
import { findWithoutSecret } from './devices.ts'
import { checkJointly } from './joint.ts'
import { findUnroutable } from './over.ts'
import { checkCrowdsecAddress, findOwnAddresses } from './own-address.ts'
import { findAddressKeys, findRepeatedNames, findUnverifiable } from './table.ts'

type Read = ReadSettings<typeof gatewayTable>

/**
 * Finds problems of settings, and of parts of the file, in combination. Settings that are wrong by themselves are skipped.
 *
 * @param folder the folder that relative paths in the file start from
 */
export function findProblems(
  read: Read,
  file: FileReading | undefined,
  folder: string,
  folderOf: FolderOf,
): Problem[] {
  if (!file) return checkJointly(read, folderOf)
  const { given, placeOf } = file.source
  const { allowList, denyList, limits: rules, crowdsec, geoip, routes, webhooks } = file.values
  const ofRule = placeOfRule(file)
  const lists = { allowList, denyList, limits: rules }
  const { clientAddressHeader, decisionsPort } = read.values
  return [
    ...findRepeatedNames(given['limits'], ofRule),
    ...findRepeatedNames(given['routes'], (index) => placeOf(['routes', index, 'name']), 'route'),
    ...checkPassword(file),
    ...findDeniedAllowances(lists, placeOf),
    ...findIdleOverrides(lists, placeOf),
    ...findAddressKeys(rules, clientAddressHeader, ofRule),
    ...findUnverifiable(rules, 'jwt' in given, ofRule),
    ...findUndecidable(rules, decisionsPort, ofRule),
    ...findMissingLists({ allowList, denyList, rules }, placeOf, folder),
    ...findWithoutSecret(rules, read.values, ofRule),
    ...findUnroutable(rules, given['routes'], routes, ofRule),
    ...findUnusableGeo(geoip, placeOf, folder),
    ...('geoip' in file.values || !('geoip' in given) ? findWithoutGeo(rules, geoip, ofRule) : []),
    ...checkCrowdsecAddress(crowdsec, read, placeOf),
    ...checkCrowdsecKey(crowdsec, placeOf, folder),
    ...checkJointly(read, folderOf),
    ...findOwnAddresses(routes, read, placeOf),
    ...findUnsigned(webhooks, read.values, 'webhookSecret' in read.values, placeOf),
  ]
}

function checkPassword({ source: { given, placeOf } }: FileReading): Problem[] {
  const redisUrl = given['redisUrl']
  if (typeof redisUrl !== 'string' || !hasPassword(redisUrl)) return []
  return [problemAt(placeOf(['redisUrl']), 'holds a password, set REDIS_URL in the environment instead')]
}
