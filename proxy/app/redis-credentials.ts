import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Log } from '../../shared/log.ts'
import { reasonOf } from '../../shared/settings/problems.ts'
import { readRegularFileSync } from '../../shared/settings/regular-file.ts'
import { readSecretFile } from '../config/written/secret-files.ts'
import type { GatewaySettings } from '../config/settings.ts'
import type { ReadCredentials } from '../limits/store/redis/connecting/options.ts'
import { addressOf, describeRedis, type RedisAddress } from '../limits/store/redis/connecting/url.ts'

/**
 * Creates the credentials for connections to Redis: the login in `REDIS_URL_FILE`, and the certificate files. All files are read again for
 * each connection. If a file cannot be read or is invalid, its last value stays in use, and a warning is logged.
 *
 * @param address the address that was read at the start; a change needs a restart
 */
export function createCredentials(
  settings: GatewaySettings,
  address: RedisAddress,
  log: Log,
): ReadCredentials {
  const { redisFolder, secretFiles } = settings
  const files = new RereadFiles(log)

  function readLogin(path: string): Pick<RedisAddress, 'username' | 'password' | 'options'> {
    const read = addressOf(readSecretFile(path))
    // The message does not quote the text, which may contain the password anywhere.
    if (!read) throw new Error('the file does not contain a Redis URL')
    if (describeRedis(read) !== describeRedis(address)) throw new Error('another Redis needs a restart')
    return read
  }

  const login = files.reader('REDIS_URL_FILE', secretFiles.get('REDIS_URL_FILE'), address, readLogin)
  const readBytes = (path: string): Buffer => readRegularFileSync(path)
  const pem = (option: 'ca' | 'cert' | 'key') => {
    const name = address.options[option]
    const path = name === undefined ? undefined : resolve(redisFolder, name)
    return files.reader(
      `REDIS_URL, ${option}`,
      path,
      path === undefined ? undefined : readBytes(path),
      readBytes,
    )
  }
  const [ca, cert, key] = [pem('ca'), pem('cert'), pem('key')]
  return () => {
    const { username, password, options } = login()
    return {
      username,
      password,
      ca: ca(),
      cert: cert(),
      key: key(),
      sentinelUsername: options.sentinelUsername,
      sentinelPassword: options.sentinelPassword,
    }
  }
}

/** Files that are read again each time. A file that cannot be read or is invalid keeps its last value. */
class RereadFiles {
  readonly #log: Log
  /** The last error of each file, by the variable that names the file, so that each error is logged once. */
  readonly #logged = new Map<string, string>()

  constructor(log: Log) {
    this.#log = log
  }

  /** @param file the variable that names the file, for the log */
  reader<Value>(
    file: string,
    path: string | undefined,
    first: Value,
    read: (path: string) => Value,
  ): () => Value {
    let last = first
    return () => {
      if (path === undefined) return last
      try {
        // Opening a pipe again would block until somebody writes to it.
        if (!statSync(path).isFile()) return last
        last = read(path)
        this.#logged.delete(file)
      } catch (error) {
        this.#warn(file, reasonOf(error))
      }
      return last
    }
  }

  #warn(file: string, reason: string): void {
    if (this.#logged.get(file) === reason) return
    this.#logged.set(file, reason)
    this.#log.warn(
      { file, reason },
      'cannot use the changed credentials for Redis; keeping the previous ones',
    )
  }
}
