/** The options after the `?` of `REDIS_URL`. */
export type RedisUrlOptions = {
  /** PEM files for TLS: authorities to trust in place of the usual ones, the client certificate, and its key. */
  readonly ca: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  /** The login at the sentinels. */
  readonly sentinelUsername: string | undefined
  readonly sentinelPassword: string | undefined
}

/** Address and login of Redis, as in `REDIS_URL`. */
export type RedisAddress = {
  readonly topology: 'standalone' | 'sentinel' | 'cluster'
  readonly tls: boolean
  /** The server, the sentinels, or some nodes of the cluster. Never empty. */
  readonly hosts: readonly RedisHost[]
  /** The master's name for Sentinel; undefined without Sentinel. */
  readonly masterName: string | undefined
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  readonly options: RedisUrlOptions
}

export type RedisHost = { readonly host: string; readonly port: number }

const FORMS =
  'redis://host:6379/0, rediss:// for TLS, redis+sentinel://host:26379,host:26379/master or ' +
  'redis+cluster://host:6379,host:6379'

/** A URL whose host is ambiguous: some parsers end the login at the last `@`, others end the host at the first `?`. */
const ambiguousHost = /^[^?]*\?.*@/

/**
 * Reads `redis://[user[:password]@]host[:port][/database]`, `redis+sentinel://…/master[/database]` and
 * `redis+cluster://…`, the last two with several hosts, all of them with `rediss` for TLS. IPv6 addresses stand in
 * brackets; user and password are percent-encoded where they need it. Options follow, as in `?ca=FILE`.
 *
 * @throws Error with the mistake in its message, without the password
 */
export function parseRedisUrl(url: string): RedisAddress {
  if (ambiguousHost.test(url))
    throw new Error('has an @ after a ?: write %40 for it, and in a password %3F for the ?')
  const parts =
    /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^/]*)@)?([^/?#@]*)(?:\/([^?#]*))?(?:\?([^#]*))?$/i.exec(url)
  if (!parts) throw new Error(`is not one of the forms ${FORMS}`)
  const [, scheme = '', kind = 'standalone', login, hostList = '', path = '', query] = parts
  const topology = kind.toLowerCase() as RedisAddress['topology']
  const hosts = hostList.split(',').map((text) => parseHost(text, topology === 'sentinel' ? 26379 : 6379))
  if (topology === 'standalone' && hosts.length > 1) {
    throw new Error('names several hosts: only redis+sentinel:// and redis+cluster:// can')
  }
  const [masterName, databaseText] = topology === 'sentinel' ? splitFirst(path, '/') : [undefined, path]
  if (masterName === '') throw new Error('lacks the name of the master: redis+sentinel://host:26379/master')
  return {
    topology,
    tls: scheme.toLowerCase() === 'rediss',
    hosts,
    masterName: masterName === undefined ? undefined : decode(masterName, 'name of the master'),
    ...parseLogin(login),
    database: parseDatabase(databaseText ?? '', topology),
    options: parseOptions(query),
  }
}

/** The parsed address of a valid URL, undefined for any other text. */
export function addressOf(redisUrl: string): RedisAddress | undefined {
  try {
    return parseRedisUrl(redisUrl)
  } catch {
    return undefined
  }
}

/** The address as it may be logged: without the login. */
export function describeRedis({ topology, tls, hosts, masterName, database }: RedisAddress): string {
  const scheme = (tls ? 'rediss' : 'redis') + (topology === 'standalone' ? '' : `+${topology}`)
  const places = hosts.map(({ host, port }) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`))
  const master = masterName === undefined ? '' : `/${masterName}`
  return `${scheme}://${places.join(',')}${master}${database === 0 ? '' : `/${database}`}`
}

function parseHost(text: string, defaultPort: number): RedisHost {
  const parts = /^(?:\[([0-9a-f:.]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/i.exec(text)
  const host = parts?.[1] ?? parts?.[2]
  const port = parts?.[3] === undefined ? defaultPort : Number(parts[3])
  if (host === undefined || port < 1 || port > 65535) {
    throw new Error(
      `has ${JSON.stringify(text)} where a host and port are needed, such as 10.0.0.5:6379 or [::1]:6379`,
    )
  }
  return { host, port }
}

function parseLogin(login: string | undefined): Pick<RedisAddress, 'username' | 'password'> {
  if (!login) return { username: undefined, password: undefined }
  const [username, password] = splitFirst(login, ':')
  return {
    username: username === '' ? undefined : decode(username, 'user'),
    password: password === undefined ? undefined : decode(password, 'password'),
  }
}

function parseDatabase(text: string, topology: RedisAddress['topology']): number {
  if (text === '') return 0
  if (!/^\d{1,9}$/.test(text))
    throw new Error(`has ${JSON.stringify(text)} where the number of a database is needed`)
  const database = Number(text)
  if (topology === 'cluster' && database !== 0)
    throw new Error('names a database: a cluster has database 0 only')
  return database
}

const optionNames: ReadonlySet<string> = new Set([
  'ca',
  'cert',
  'key',
  'sentinelUsername',
  'sentinelPassword',
])

function parseOptions(query = ''): RedisUrlOptions {
  const found = new Map<string, string>()
  for (const [name, value] of query === '' ? [] : query.split('&').map((option) => splitFirst(option, '='))) {
    if (!optionNames.has(name)) throw new Error(`has an option other than ${[...optionNames].join(', ')}`)
    if (!value || found.has(name)) throw new Error(`needs one value for its option ${name}`)
    found.set(name, decode(value, `option ${name}`))
  }
  return {
    ca: found.get('ca'),
    cert: found.get('cert'),
    key: found.get('key'),
    sentinelUsername: found.get('sentinelUsername'),
    sentinelPassword: found.get('sentinelPassword'),
  }
}

function splitFirst(text: string, separator: string): [string, string | undefined] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

function decode(text: string, what: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error(`has a broken percent escape in the ${what}`)
  }
}
