import { problemAt, type Problem } from '../../../shared/settings/problems.ts'
import type { ReadSettings } from '../../../shared/settings/settings.ts'
import { addressOf } from '../../limits/store/redis/connecting/url.ts'
import type { gatewayTable } from '../settings-table.ts'
import { mistakeInAuthorities, mistakesInPair, type FolderOf } from './certificates.ts'

/**
 * Finds mistakes in the options of `REDIS_URL`. An option without effect is a mistake, because the operator believes that it secures the
 * connection.
 */
export function checkRedis(
  { values, placeOf }: ReadSettings<typeof gatewayTable>,
  folderOf: FolderOf,
): Problem[] {
  const address = values.redisUrl === undefined ? undefined : addressOf(values.redisUrl)
  if (!address) return []
  const { tls, topology, options } = address
  const folder = folderOf('redisUrl')
  const fail = (option: string, text: string): Problem => problemAt(placeOf('redisUrl'), `${option}: ${text}`)
  const idle = (option: keyof typeof options, needed: string): Problem[] =>
    options[option] === undefined ? [] : [fail(option, `has no effect, needs ${needed}`)]
  const file = (option: 'cert' | 'key') => ({
    name: options[option],
    folder,
    fail: (text: string) => fail(option, text),
  })
  const wrongCa = options.ca === undefined ? undefined : mistakeInAuthorities(options.ca, folder)
  return [
    ...(wrongCa === undefined ? [] : [fail('ca', wrongCa)]),
    ...mistakesInPair(file('cert'), file('key')),
    ...(options.sentinelUsername !== undefined && options.sentinelPassword === undefined
      ? [fail('sentinelPassword', 'missing, required with sentinelUsername')]
      : []),
    ...(tls ? [] : [...idle('ca', 'rediss://'), ...idle('cert', 'rediss://')]),
    ...(topology === 'sentinel'
      ? []
      : [...idle('sentinelUsername', 'redis+sentinel://'), ...idle('sentinelPassword', 'redis+sentinel://')]),
  ]
}
