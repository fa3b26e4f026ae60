import { execFile, execFileSync, spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeFileSync } from 'node:fs'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { Report } from '../../proxy/cli/replay/report.ts'
import type { Suggestion } from '../../proxy/cli/replay/suggest.ts'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { commandOf, type Finished } from '../support/gateway/process.ts'
import { directoryWith, loadWithFile } from '../support/gateway/settings.ts'
import { atEndOfFile } from '../support/run/at-end.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

const start = Date.UTC(2026, 2, 1)
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** A line in the combined log format. */
function line(atS: number, ip: string, request: string, status = 200): string {
  const iso = new Date(start + atS * 1000).toISOString()
  const month = months[Number(iso.slice(5, 7)) - 1] ?? ''
  const time = `${iso.slice(8, 10)}/${month}/${iso.slice(0, 4)}:${iso.slice(11, 19)} +0000`
  return `${ip} - - [${time}] "${request} HTTP/1.1" ${status} 5 "-" "curl"`
}

/** The requests of a client that sends one every `everyS` seconds. */
function regular(ip: string, everyS: number, untilS: number, request = 'POST /login'): [number, string][] {
  return Array.from({ length: untilS / everyS }, (_, i) => [i * everyS, line(i * everyS, ip, request)])
}

/** Merges the lines of several clients in order of time. */
function inOrder(...clients: [number, string][][]): string[] {
  return clients
    .flat()
    .sort(([a], [b]) => a - b)
    .map(([, text]) => text)
}

function textOf(lines: readonly string[]): string {
  return lines.map((text) => `${text}\n`).join('')
}

const table = 'limits: [{ name: login, match: POST /login, requests: 30, window: 100s }]\n'

async function replay(
  yaml: string,
  files: Readonly<Record<string, string | Buffer>>,
  ...args: string[]
): Promise<Finished & { report: Report }> {
  const cwd = directoryWith(yaml)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), content)
  const finished = await runHosted(['replay', ...args, '--json', ...Object.keys(files)], {}, cwd)
  return { ...finished, report: JSON.parse(finished.stdout || 'null') as Report }
}

test('requests over a limit that would have waited are counted as passed, and told', async () => {
  const lines = Array.from({ length: 10 }, () => line(0, '192.0.2.1', 'GET /a'))
  const { report } = await replay(
    `limits:
  - { name: paced, match: GET /a, algorithm: token-bucket, requests: 1, window: 1s, burst: 2, over: { delay: 5s } }
`,
    { 'access.log': textOf(lines) },
  )
  expect(report.requests).toMatchObject({ limited: 10, refused: 3 })
  expect(report.rules).toMatchObject([{ requests: 10, refused: 3, delayed: 5, over: { delayMs: 5000 } }])
})

describe('fixed windows', () => {
  // In 1000 s each client has ten windows of 100 s. A client that sends a request every second has 100 in each window, and 70 are refused;
  // a client that sends one every 5 s has 20, and is never refused.
  const lines = inOrder(
    regular('192.0.2.1', 1, 1000),
    regular('192.0.2.2', 2, 1000),
    regular('192.0.2.3', 5, 1000),
    regular('192.0.2.4', 1, 1000, 'GET /other'),
  )

  test('replay of fixed windows refuses exactly the calculated number of requests', async () => {
    const { status, report } = await replay(table, { 'access.log': textOf(lines) })
    expect(status).toBe(0)
    expect(report).toMatchObject({
      from: '2026-03-01T00:00:00.000Z',
      to: '2026-03-01T00:16:39.000Z',
      lines: { read: 2700, other: 0, unreadable: 0, formats: { combined: 2700 } },
      requests: { total: 2700, limited: 1700, refused: 900, denied: 0, rejected: {}, late: 0 },
    })
    expect(report.rules).toEqual([
      {
        name: 'login',
        mode: 'enforce',
        algorithm: 'fixed',
        limit: 30,
        windowSeconds: 100,
        requests: 1700,
        refused: 10 * 70 + 10 * 20,
        clients: 3,
        clientsRefused: 2,
        // Peaks of 20, 50 and 100 requests under a limit of 30.
        clientsByPeak: [0, 0, 0, 1, 1, 1, 0, 0],
        busiest: [
          { client: { ip: '192.0.2.1' }, requests: 1000, refused: 700, peak: 100, over: 70 },
          { client: { ip: '192.0.2.2' }, requests: 500, refused: 200, peak: 50, over: 20 },
          { client: { ip: '192.0.2.3' }, requests: 200, refused: 0, peak: 20, over: 0 },
        ],
        unknown: [],
      },
    ])
  })

  test('replay gives the same result for split, compressed and slightly unordered logs', async () => {
    const expected = (await replay(table, { 'access.log': textOf(lines) })).report
    const swapped = lines.map((_, i) => lines[i % 4 < 2 ? i ^ 1 : i] ?? '')
    const [first, second, third] = [lines.slice(0, 900), swapped.slice(900, 1800), lines.slice(1800)].map(
      textOf,
    )
    const parts = {
      'c.log': third ?? '',
      'a.log.gz': gzipSync(first ?? ''),
      'b.log.zst': zstdCompressSync(second ?? ''),
    }
    const { report } = await replay(table, parts)
    expect(report).toEqual(expected)
    // Two replicas have logged half of the requests each.
    const halves = [0, 1].map((half) => textOf(lines.filter((_, i) => i % 2 === half)))
    expect((await replay(table, { 'a.log': halves[0] ?? '', 'b.log': halves[1] ?? '' })).report).toEqual(
      expected,
    )
  })

  test('standard input gives the same result as a file', async () => {
    const { args, env } = commandOf('proxy/cli/main.ts')
    const child = spawn(process.execPath, [...args, 'replay', '-', '--json'], {
      cwd: directoryWith(table),
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    const sent = gzipSync(textOf(lines))
    child.stdin.write(sent.subarray(0, 1000))
    // The reader has to wait for the rest.
    await sleep(2_500)
    child.stdin.end(sent.subarray(1000))
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ requests: { total: 2700, refused: 900 } })
  })
})

test('sliding windows, buckets and several rules refuse as they do in a gateway', async () => {
  const yaml = `limits:
  - { name: sliding, match: GET /s, requests: 10, window: 100s, algorithm: sliding }
  - { name: bucket, match: GET /b, requests: 1, window: 10s, burst: 5, algorithm: token-bucket }
  - { name: shadow, match: 'GET /*', key: global, requests: 100, window: 1h, mode: shadow }
`
  // One request every 5 s makes 20 in any 100 s, ten of which pass. The bucket allows 5 at once and one more every 10 s, so 5 + 99 of 200.
  const lines = inOrder(regular('192.0.2.1', 5, 1000, 'GET /s'), regular('192.0.2.2', 5, 1000, 'GET /b'))
  const { report } = await replay(yaml, { log: textOf(lines) })
  const [sliding, bucket, shadow] = report.rules
  expect(sliding).toMatchObject({ requests: 200, refused: 100, clients: 1 })
  expect(bucket).toMatchObject({ requests: 200, refused: 200 - 5 - 99 })
  // The shadow rule counts the requests that the other rules let pass, and would refuse those beyond 100.
  expect(shadow).toMatchObject({ requests: 400, refused: 100 + 104 - 100, mode: 'shadow', clients: 1 })
  expect(report.requests.refused).toBe(100 + 96)
})

test('only responses with countStatus count, and requests in flight count for their logged duration', async () => {
  const yaml = `limits:
  - { name: failed, match: POST /login, requests: 3, window: 1h, countStatus: 401 }
  - { name: slow, match: GET /slow, concurrency: 2 }
`
  const logins = [200, 401, 200, 401, 200, 401, 200, 401].map((status, i) =>
    line(i, '192.0.2.1', 'POST /login', status),
  )
  // Each request takes 10 s and one begins every 4 s, so every third one would be concurrent with two others.
  const slow = Array.from({ length: 9 }, (_, i) =>
    JSON.stringify({
      ts: start / 1000 + i * 4 + 10,
      duration: 10,
      status: 200,
      request: { remote_ip: '192.0.2.1', method: 'GET', uri: '/slow', host: 'a', headers: {} },
    }),
  )
  const { report } = await replay(yaml, { 'a.log': textOf(logins), 'b.log': textOf(slow) })
  const [failed, inFlight] = report.rules
  // After three failures, correct and wrong logins are both refused.
  expect(failed).toMatchObject({ requests: 8, refused: 2, unknown: [] })
  expect(inFlight).toMatchObject({ requests: 9, refused: 3, unknown: [] })
})

test('clients are banned as a gateway bans them, each time for twice as long', async () => {
  const yaml = `limits:
  - { name: login, match: POST /login, requests: 1, window: 10s, ban: { after: 2, for: 10s, max: 20s } }
`
  // Allowed at 0, refused at 1 and 2, so banned until 12. The next windows begin at 12 and, after the second ban, at 34, 56, …
  const { report } = await replay(yaml, { log: textOf(inOrder(regular('192.0.2.1', 1, 100))) })
  expect(report.requests).toMatchObject({ total: 100, limited: 15, refused: 95, banned: 85 })
  expect(report.rules[0]).toMatchObject({ requests: 15, refused: 10, bans: 5, unknown: [] })
})

describe('a client that rules ban', () => {
  // One of three clients sends 1,000 requests, one a second; the others send one every 100 s.
  const lines = inOrder(
    regular('192.0.2.1', 1, 1000),
    regular('192.0.2.2', 100, 1000),
    regular('192.0.2.3', 100, 1000),
  )
  const yaml = (ban: string): string =>
    `limits: [{ name: login, match: POST /login, requests: 10, window: 1h${ban} }]\n`

  test.each([
    ['by its address, everywhere', ', ban: { after: 2, for: 1h, max: 1h }'],
    ['under the rule alone', ', ban: { after: 2, for: 1h, max: 1h, scope: rule }'],
  ])('%s, is the busiest by all that it asked for, as without the ban', async (_how, ban) => {
    const banned = await replay(yaml(ban), { log: textOf(lines) }, '--suggest')
    const free = await replay(yaml(''), { log: textOf(lines) }, '--suggest')
    const busiest = ({ report }: { report: Report }): unknown =>
      report.rules[0]?.busiest.map(({ client, peak, over }) => ({ client, peak, over }))
    expect(busiest(banned)).toEqual(busiest(free))
    expect(banned.report.rules[0]?.busiest[0]).toMatchObject({ peak: 1000, requests: 1000, refused: 990 })
    const limitsOf = ({ stdout }: { stdout: string }): unknown =>
      (JSON.parse(stdout) as { suggestions: Suggestion[] }).suggestions.map(({ rules }) =>
        rules.map(({ requests, over }) => ({ requests, over })),
      )
    expect(limitsOf(banned)).toEqual(limitsOf(free))
  })

  test.each([
    ['192.0.2.1', 1000],
    ['192.0.2.0/31', 1000],
    ['192.0.2.0/30', 1020],
  ])('is left out with --exclude %s', async (client, count) => {
    const { report, stdout } = await replay(
      yaml(''),
      { log: textOf(lines) },
      '--suggest',
      '--exclude',
      client,
    )
    expect(report.requests).toMatchObject({ total: 1020 - count, excluded: count, refused: 0 })
    expect(report.rules[0]?.busiest.map(({ peak }) => peak)).toEqual(count === 1000 ? [10, 10] : [])
    const { suggestions } = JSON.parse(stdout) as { suggestions: Suggestion[] }
    if (count === 1000) expect(suggestions[0]?.rules[0]?.requests).toBeLessThanOrEqual(10)
  })
})

test('--exclude takes headers, and the h:… names of a report', async () => {
  const caddy = (key: string, at: number): string =>
    JSON.stringify({
      ts: start / 1000 + at,
      duration: 0.5,
      status: 200,
      request: {
        remote_ip: '192.0.2.1',
        method: 'GET',
        uri: '/',
        host: 'a',
        headers: { 'X-Api-Key': [key] },
      },
    })
  const yaml = 'limits: [{ name: key, match: GET /, key: "header:x-api-key", requests: 1, window: 1m }]\n'
  const log = textOf(['a', 'b', 'a', 'a'].map(caddy))
  const { report } = await replay(yaml, { log })
  const { id } = (report.rules[0]?.busiest[0]?.client ?? {}) as { id: string }
  for (const client of [id, 'header:X-Api-Key=a']) {
    const without = await replay(yaml, { log }, '--exclude', client)
    expect(without.report.requests).toMatchObject({ total: 1, excluded: 3, refused: 0 })
    expect(without.report.rules[0]).toMatchObject({ requests: 1, clients: 1 })
  }
  const wrong = await runHosted(['replay', '--exclude', 'somebody', 'a.log'], {}, directoryWith(yaml))
  expect(wrong).toMatchObject({ status: 2, stderr: expect.stringContaining('got "somebody"') as string })
})

test('a line whose time is out of range is reported, and the others are counted', async () => {
  const impossible =
    '{"ts":1e30,"duration":0.5,"status":200,"request":{"remote_ip":"192.0.2.1","method":"POST","uri":"/login"}}'
  const { status, report } = await replay(table, {
    'a.log': textOf([impossible, ...inOrder(regular('192.0.2.1', 1, 100))]),
  })
  expect(status).toBe(0)
  expect(report).toMatchObject({
    to: '2026-03-01T00:01:39.000Z',
    requests: { total: 100, refused: 70, late: 0 },
    lines: { unreadable: 1, examples: [{ line: 1, why: 'the time is out of range' }] },
  })
})

test('replay lists the inputs that the log lacks, for each rule that needs them', async () => {
  const yaml = `limits:
  - { name: key, match: GET /a, key: 'header:x-api-key', requests: 1, window: 1m }
  - { name: host, match: GET /a, hosts: app.example.com, requests: 1, window: 1m }
  - { name: agent, match: GET /a, key: 'header:user-agent', requests: 1, window: 1m }
  - { name: flight, match: GET /a, concurrency: 1 }
  - { name: cost, match: GET /a, requests: 9, window: 1m, cost: { reserve: 2, settle: 'header:x-cost' } }
`
  const { report } = await replay(yaml, {
    log: textOf([line(0, '192.0.2.1', 'GET /a'), line(1, '192.0.2.1', 'GET /b')]),
  })
  expect(report.rules.map(({ name, requests, unknown }) => [name, requests, unknown])).toEqual([
    ['key', 0, [{ what: 'header:x-api-key', requests: 1 }]],
    ['host', 0, [{ what: 'hosts', requests: 1 }]],
    ['agent', 1, []],
    ['flight', 1, [{ what: 'concurrency', requests: 1 }]],
    ['cost', 1, [{ what: 'cost', requests: 1 }]],
  ])
  const named = await replay(
    yaml,
    { log: `${line(0, '192.0.2.1', 'GET /a')}\n` },
    '--host',
    'app.example.com',
  )
  expect(named.report.rules[1]).toMatchObject({ name: 'host', requests: 1, unknown: [] })
})

test('unreadable lines are counted and shown, and rejected requests are reported', async () => {
  const text = ['nonsense', line(0, '192.0.2.1', 'POST /login'), '', line(1, '192.0.2.1', 'GET /a%00')].join(
    '\n',
  )
  const { status, report } = await replay(table, { 'a.log': text })
  expect(status).toBe(0)
  expect(report.lines).toMatchObject({
    read: 2,
    other: 1,
    unreadable: 1,
    examples: [{ file: 'a.log', line: 1, why: 'in no known format', text: 'nonsense' }],
  })
  expect(report.requests).toMatchObject({ total: 2, rejected: { 'the path has a control character': 1 } })
})

test('the client is whom trusted proxies name, where the log has it', async () => {
  const forwarded = [1, 2, 3].map((i) => `${line(i, '10.0.0.1', 'POST /login')} "192.0.2.${i}"`)
  const { report } = await replay(`trustedProxies: [10.0.0.0/8]\n${table}`, { log: textOf(forwarded) })
  expect(report.rules[0]).toMatchObject({ requests: 3, clients: 3 })
})

test('requests whose client a trusted proxy did not name are told', async () => {
  const cwd = directoryWith(`trustedProxies: [10.0.0.0/8]\n${table}`)
  const lines = [
    line(1, '10.0.0.1', 'POST /login'),
    `${line(2, '10.0.0.1', 'POST /login')} "app.example.com"`,
    `${line(3, '10.0.0.1', 'POST /login')} "192.0.2.7"`,
    line(4, '192.0.2.1', 'POST /login'),
  ]
  writeFileSync(join(cwd, 'a.log'), textOf(lines))
  const note = '2 requests counted by the address of a trusted proxy: the log does not name their clients'
  expect((await runHosted(['replay', 'a.log'], {}, cwd)).stderr).toContain(note)
  expect((await runHosted(['replay', '--html', 'a.log'], {}, cwd)).stdout).toContain(
    note.replace(' requests', ''),
  )
  const { stdout } = await runHosted(['replay', '--json', 'a.log'], {}, cwd)
  expect(JSON.parse(stdout)).toMatchObject({ requests: { ofProxies: 2 } })
})

test('replay prints a table for people', async () => {
  const cwd = directoryWith(table)
  writeFileSync(join(cwd, 'a.log'), textOf([...inOrder(regular('192.0.2.1', 1, 100)), 'nonsense']))
  const { status, stdout, stderr } = await runHosted(['replay', 'a.log'], {}, cwd)
  expect(status).toBe(0)
  expect(stdout).toMatch(
    /^100 requests from 2026-03-01T00:00:00\.000Z to 2026-03-01T00:01:39\.000Z \(100 combined\)$/m,
  )
  expect(stdout).toMatch(/^login +100 +70 +1 +1 +192\.0\.2\.1 +100 +70$/m)
  expect(stderr).toContain('1 line could not be read:\n  a.log:101: in no known format: nonsense')
})

describe('--html', () => {
  const hostile = `<script>alert(1)</script>"'&\u202e\u001b[31m`

  async function pageOf(yaml: string, text: string, ...args: string[]): Promise<string> {
    const cwd = directoryWith(yaml)
    writeFileSync(join(cwd, 'a.log'), text)
    const { status, stdout, stderr } = await runHosted(['replay', '--html', ...args, 'a.log'], {}, cwd)
    expect(status, stderr).toBe(0)
    return Buffer.from(stdout, 'latin1').toString()
  }

  test('--html prints one page that loads nothing else, with each plot as text too', async () => {
    const lines = inOrder(regular('192.0.2.1', 1, 1000), regular('192.0.2.3', 5, 1000))
    const page = await pageOf(`# kept\n${table}`, textOf(lines), '--suggest')
    expect(page).not.toMatch(/<script|<link|<img|@import|url\(|https?:/i)
    expect(page).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`)
    expect(page).toContain('prefers-color-scheme: dark')
    // Two charts over time and one of the clients.
    expect(page.match(/<svg /g)).toHaveLength(3)
    expect(page.match(/<svg [^>]*role="img" aria-label="[^"]{40,}">/g)).toHaveLength(3)
    const told =
      '1,200 requests from 2026-03-01T00:00:00Z to 2026-03-01T00:16:40Z, 700 of them refused; at most 10 requests in 8 s'
    expect(page).toContain(told)
    expect(page).toContain('to ½: 0; to limit: 1; to 2×: 0; to 4×: 1; to 8×: 0')
    expect(
      page.match(/<td class="number">10<\/td><td class="number">\d<\/td><\/tr>/g)?.length,
    ).toBeGreaterThan(40)
    expect(page).toContain('<th scope="row">192.0.2.1</th>')
    expect(page).toContain('Suggested: refusing at most 0.1 %')
    expect(page).toContain('<pre># kept\nlimits:')
  })

  test('the HTML report escapes texts from the log and the table', async () => {
    const text = [hostile, line(0, '192.0.2.1', 'POST /login'), ''].join('\n')
    const page = await pageOf(
      `limits:\n  # ${hostile.slice(0, 25)}\n  - { name: login, match: POST /login, requests: 1, window: 1s }\n`,
      text,
      '--suggest',
    )
    expect(page).toContain('&#60;script&#62;alert(1)&#60;/script&#62;&#34;&#39;&#38;')
    expect(page).not.toMatch(/<script|[\u001b\u202e]/)
  })

  test('--html prints a page even for a log in which no rule counts anything', async () => {
    expect(await pageOf(table, `${line(0, '192.0.2.1', 'GET /other')}\n`)).toContain('It counts no request.')
  })

  test('--html and --json cannot be combined', async () => {
    const { status, stderr } = await runHosted(['replay', '--html', '--json', 'a.log'])
    expect(status).toBe(2)
    expect(stderr).toContain('--json')
  })
})

describe('--suggest', () => {
  const yaml = `# not part of the suggested text
upstream: http://127.0.0.1:1
limits:
  # as in the old table
  - { name: login, match: POST /login, requests: 30, window: 100s }
  - { name: slow, match: GET /slow, concurrency: 2 }
`
  // Ten windows of 100 s. In each, 990 clients send one to five requests, and ten abusers send 40 to 49.
  const bursts = Array.from({ length: 1000 }, (_, i) => ({
    ip: `10.0.${i >> 8}.${i & 255}`,
    offset: i < 10 ? i : i % 50,
    count: i < 10 ? 40 + i : 1 + (i % 5),
  }))
  const lines = inOrder(
    ...bursts.map(({ ip, offset, count }) =>
      Array.from({ length: 10 * count }, (_, i): [number, string] => {
        const atS = 100 * Math.floor(i / count) + offset + (i % count)
        return [atS, line(atS, ip, 'POST /login')]
      }),
    ),
  )

  test('--suggest finds the abusers, and its limits hold on the part of the log that it has not seen', async () => {
    const { status, stdout } = await replay(yaml, { 'access.log': textOf(lines) }, '--suggest')
    expect(status).toBe(0)
    const { suggestions } = JSON.parse(stdout) as { suggestions: (Suggestion & { table: string })[] }
    expect(suggestions.map(({ share, rules }) => [share, rules.length])).toEqual([
      [0.001, 1],
      [0.01, 1],
    ])
    const [one, ten] = suggestions.map(({ rules }) => rules[0])
    expect(one).toEqual({
      name: 'login',
      requests: 48,
      clients: 1000,
      clientsOver: 1,
      over: [{ client: { ip: '10.0.0.9' }, peak: 49 }],
      heldOut: { requests: 3 * (990 * 3 + 445), refused: 3, clients: 1000, clientsRefused: 1 },
    })
    expect(ten).toMatchObject({
      requests: 5,
      clientsOver: 10,
      heldOut: { refused: 3 * (445 - 50), clientsRefused: 10 },
    })
    expect(ten?.over.map(({ peak }) => peak)).toEqual([49, 48, 47, 46, 45, 44, 43, 42, 41, 40])

    // The suggestion is ready to paste: valid, with its comment, and without the rest of the file.
    const table = suggestions[1]?.table ?? ''
    expect(table).toContain('# as in the old table')
    expect(table).not.toContain('upstream')
    const { settings } = loadWithFile(table)
    expect(settings.rules.map(({ policy }) => [policy.name, policy.quota])).toEqual([
      ['login', 5],
      ['slow', 2],
    ])
  })

  test('--suggest prints readable tables, for the built-in limits too', async () => {
    const cwd = makeTemporaryDirectory()
    writeFileSync(join(cwd, 'a.log'), textOf(lines))
    const { status, stdout } = await runHosted(['replay', '--suggest', 'a.log'], {}, cwd)
    expect(status).toBe(0)
    expect(stdout).toContain('refusing at most 0.1 % of the clients of a rule')
    expect(stdout).not.toContain('clients is less than one')
    expect(stdout).toMatch(/^limits:\n {2}- name: login\n {4}match: POST \/login\n {4}requests: \d+$/m)
  })

  test('--suggest says for which rules it has no figure', async () => {
    const cwd = makeTemporaryDirectory()
    writeFileSync(join(cwd, 'a.log'), textOf(lines.slice(0, 5000)))
    const bucket = '{ name: a, match: "* /*", algorithm: token-bucket, requests: 1, window: 1m }'
    const failures = '{ name: b, match: "* /*", requests: 1, window: 1m, countStatus: [4xx, 2xx] }'
    writeFileSync(join(cwd, 'sluice.yaml'), `limits: [${bucket}, ${failures}]`)
    const { status, stdout } = await runHosted(['replay', '--suggest', 'a.log'], {}, cwd)
    expect(status).toBe(0)
    expect(stdout).toMatch(/^nothing to suggest: .* and without countStatus and cost$/m)
    expect(stdout).not.toContain('REQUESTS LATER')
  })

  test('--suggest says for which rules there are too few clients', async () => {
    const cwd = makeTemporaryDirectory()
    const few = lines.filter((line) => /\b10\.0\.0\.\d\b/.test(line))
    writeFileSync(join(cwd, 'a.log'), textOf(few))
    const { stdout } = await runHosted(['replay', '--suggest', 'a.log'], {}, cwd)
    expect(stdout).toMatch(
      /^login: 1 % of \d+ clients is less than one, so the limit is that of the busiest/m,
    )
  })

  test('--suggest reads the logs twice, so it refuses standard input', async () => {
    const { status, stderr } = await runHosted(['replay', '--suggest', '-'])
    expect(status).toBe(2)
    expect(stderr).toContain('--suggest')
  })

  test('--suggest reads the logs twice, so it refuses a pipe', async () => {
    const cwd = makeTemporaryDirectory()
    execFileSync('mkfifo', [join(cwd, 'pipe')])
    const { status, stderr } = await runHosted(['replay', '--suggest', 'pipe'], {}, cwd)
    expect(status).toBe(2)
    expect(stderr).toContain('--suggest reads the logs twice, so "pipe" must be a file')
  })

  test('--suggest reads the settings twice, so it refuses settings from a pipe', async () => {
    const cwd = makeTemporaryDirectory()
    const path = join(cwd, 'pipe')
    execFileSync('mkfifo', [path])
    writeFileSync(join(cwd, 'a.log'), textOf(lines))
    const writer = execFile('sh', ['-c', 'printf %s "$1" > "$2"', 'sh', table, path])
    atEndOfFile(() => void writer.kill())
    const { status, stderr } = await runHosted(['replay', '--suggest', 'a.log'], { CONFIG_FILE: path }, cwd)
    expect(status).toBe(2)
    expect(stderr).toContain('--suggest reads the settings twice')
  })
})

test.each([
  [['none.log'], 1],
  [['.'], 1],
  [['-', '-'], 2],
  [['--format', 'none', 'a.log'], 2],
  [['--host', 'https://app.example.com', 'a.log'], 2],
  [[], 2],
])('%j ends with status %i', async (args, expected) => {
  const { status, stdout, stderr } = await runHosted(['replay', ...args])
  expect({ status, stdout }).toEqual({ status: expected, stdout: '' })
  expect(stderr).not.toBe('')
})
