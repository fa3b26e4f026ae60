import { expect, test } from 'vitest'
import { connectRedis } from '../../../../../proxy/limits/store/redis/connecting/connection.ts'
import { parseRedisUrl } from '../../../../../proxy/limits/store/redis/connecting/url.ts'
import { recordLog } from '../../../../support/limiter/recordings.ts'

// A file with new credentials may be written between two reads.
test('the logins at Sentinel and at the master are read together', () => {
  let reads = 0
  const readCredentials = () => {
    reads += 1
    return { password: `master ${reads}`, sentinelPassword: `sentinel ${reads}` }
  }
  const connection = connectRedis(
    parseRedisUrl('redis+sentinel://127.0.0.1:1/main'),
    recordLog().log,
    readCredentials,
  )
  connection.close()
  expect(connection.client.options).toMatchObject({ password: 'master 1', sentinelPassword: 'sentinel 1' })
})
