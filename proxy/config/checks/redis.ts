import { problemAt, type Problem } from '../../../shared/settings/problems.ts'
import type { ReadSettings } from '../../../shared/settings/settings.ts'
import { addressOf } from '../setting-kinds.ts'
import type { gatewayTable } from '../settings-table.ts'
import { checkAuthorities, checkPair, type FolderOf } from './certificates.ts'

type Read = ReadSettings<typeof gatewayTable>

/** Finds mistakes in the settings for connections to Redis, by itself or beside `REDIS_URL`. */
export function checkRedis(read: Read, folderOf: FolderOf): Problem[] {
  return [
    ...checkAuthorities(read, 'redisCaFile', folderOf),
    ...checkPair(read, { cert: 'redisCertFile', key: 'redisKeyFile' }, folderOf),
    ...checkSentinelLogin(read),
    ...checkUse(read),
  ]
}

function checkSentinelLogin({ values, placeOf }: Read): Problem[] {
  const hasNoPassword = 'redisSentinelPassword' in values && values.redisSentinelPassword === undefined
  if (!hasNoPassword || values.redisSentinelUsername === undefined) return []
  return [problemAt(placeOf('redisSentinelPassword'), 'missing, required with REDIS_SENTINEL_USERNAME')]
}

/** A setting without effect is a mistake: the operator believes that it secures the connection. */
function checkUse({ values, placeOf }: Read): Problem[] {
  const address = values.redisUrl === undefined ? undefined : addressOf(values.redisUrl)
  if (!address) return []
  const overTls = address.tls ? [] : (['redisCaFile', 'redisCertFile'] as const)
  const atSentinels =
    address.topology === 'sentinel' ? [] : (['redisSentinelUsername', 'redisSentinelPassword'] as const)
  return [
    ...overTls
      .filter((property) => values[property] !== undefined)
      .map((property) =>
        problemAt(placeOf(property), 'has no effect, needs a Redis URL with TLS (rediss://)'),
      ),
    ...atSentinels
      .filter((property) => values[property] !== undefined)
      .map((property) =>
        problemAt(placeOf(property), 'has no effect, needs a Redis URL for Sentinel (redis+sentinel://)'),
      ),
  ]
}
