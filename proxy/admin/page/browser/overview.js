import { at, fill, make, setClass, setText } from './dom.js'
import { formatSeconds, formatTime } from './format.js'

export function setHealth(text, kind) {
  setText(at('health'), text)
  setClass(at('health'), `badge ${kind}`)
  document.title = text === 'Healthy' ? 'Sluice' : `${text} · Sluice`
}

export function showHealth({ status, breakerOpen, workersAnswering, config }) {
  if (status.status !== 'ready') setHealth(status.status === 'stopping' ? 'Stopping' : 'Starting', 'warn')
  else if (status.upstream === 'unavailable') setHealth('Backend unavailable', 'bad')
  else if (status.unavailableStoreNodes) setHealth('Part of Redis unavailable', 'bad')
  else if (status.store === 'unavailable' || breakerOpen) setHealth('Redis unavailable', 'bad')
  else if (!status.limitsEnabled) setHealth('Limits are switched off', 'warn')
  else if (workersAnswering < status.workers) setHealth('Not all workers answer', 'warn')
  else if (!config.lastReadSucceeded) setHealth('The last reload was refused', 'warn')
  else setHealth('Healthy', 'good')
}

const outOfUse = ({ listedServers = [] }) => listedServers.filter(({ state }) => state !== 'available')

/** Shows the number of backend servers in use, and lists those out of use. */
function describeServers(status) {
  const { available = 0, ejected = 0, unhealthy = 0 } = status.servers ?? {}
  const names = outOfUse(status).map(
    ({ upstream, url, address, state }) => `${upstream} ${url}${address ? ` (${address})` : ''} ${state}`,
  )
  const more = ejected + unhealthy - names.length
  const counts = `${available} of ${available + ejected + unhealthy}`
  return [counts, ...names.slice(0, 5), ...(names.length > 5 || more > 0 ? ['…'] : [])].join(', ')
}

/** Describes open circuit breakers. In a cluster, each node has its own. */
function describeOpen({ unavailableStoreNodes: nodes = [] }) {
  const more = nodes.length > 5 ? ', …' : ''
  return nodes.length > 0 ? `open for ${nodes.slice(0, 5).join(', ')}${more}` : 'open'
}

const kinds = { ready: 'good', available: 'good', unavailable: 'bad', stopping: 'warn', starting: 'warn' }

export function showState({ status, workersAnswering, breakerOpen, connections, config }) {
  const lastSuccess = formatTime(config.lastSuccessAt)
  const shown = [
    ['Gateway', status.status, kinds[status.status]],
    ['Store', status.store === 'memory' ? 'in memory' : status.store, kinds[status.store]],
    // Without Redis there is no circuit breaker.
    [
      'Circuit breaker',
      status.store === 'memory' ? '' : breakerOpen ? describeOpen(status) : 'closed',
      breakerOpen ? 'bad' : '',
    ],
    ['Backend', status.upstream === 'unknown' ? 'not asked yet' : status.upstream, kinds[status.upstream]],
    ['Servers', describeServers(status), outOfUse(status).length > 0 ? 'warn' : ''],
    ['Workers', `${workersAnswering} of ${status.workers}`, workersAnswering < status.workers ? 'warn' : ''],
    ['Connections', String(connections), ''],
    ['Version', status.version, ''],
    ['Up for', formatSeconds(status.uptimeSeconds), ''],
    ['Table of limits', status.tableHash, ''],
    [
      'Last read',
      config.lastReadSucceeded ? lastSuccess : `refused; in effect since ${lastSuccess}`,
      config.lastReadSucceeded ? '' : 'warn',
    ],
  ]
  const list = at('state')
  if (list.children.length === 0)
    for (const [name] of shown) list.append(make('div', {}, make('dt', {}, name), make('dd')))
  for (const [index, [, text, kind]] of shown.entries()) {
    list.children[index].hidden = text === ''
    const value = list.children[index].lastElementChild
    setText(value, text)
    setClass(value, kind ?? '')
  }
}

/** Shows why a reload was refused: each mistake is a line with its place, as `sluice validate` prints it. */
export function showRefusedReload({ config }) {
  const { lastReadSucceeded, mistakes = [] } = config
  at('refused-reload').hidden = lastReadSucceeded || mistakes.length === 0
  fill(at('reload-mistakes'), lastReadSucceeded ? [] : mistakes, {
    keyOf: (text) => text,
    makeOne: (text) => make('li', {}, text),
    writeOne: () => undefined,
  })
}

/** Shows the replicas that have reported through Redis. */
export function showReplicas({ replicas, status }) {
  const list = (replicas.replicas ?? []).map((one, index) => ({ ...one, key: `${one.host} ${index}` }))
  at('replicas-section').hidden = list.length === 0
  fill(at('replicas'), list, {
    keyOf: (one) => one.key,
    makeOne: () =>
      make(
        'tr',
        {},
        make('th', { scope: 'row' }),
        ...['State', 'Table of limits', 'Workers', 'Version'].map((name) =>
          make('td', { 'data-name': name }),
        ),
      ),
    writeOne(row, one) {
      const [head, state, table, workers, version] = row.children
      setText(head, one.self ? `${one.host} (this one)` : one.host)
      setText(state, one.status)
      setClass(state, kinds[one.status] ?? '')
      const isSame = one.tableHashes.every((hash) => hash === status.tableHash)
      setText(table, isSame ? one.tableHashes.join(', ') : `${one.tableHashes.join(', ')}, another one`)
      setClass(table, isSame ? '' : 'warn')
      setText(workers, String(one.workers))
      setText(version, one.version)
    },
  })
}
