import { spawnSync } from 'node:child_process'
import { globSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { send } from '../support/gateway/gateway.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { startApache } from './apache.ts'
import { runClient } from './client.ts'
import { curl } from './curl.ts'
import { startMariaDb } from './mariadb.ts'
import { presetConfig } from './preset.ts'
import { letIn, letInWhenRefused } from './refusals.ts'
import { setStage, type Way } from './stage.ts'

// WordPress on Apache with 8 processes, and Chromium: the editor requests about a hundred files at once.

/** A browser that calls itself `tight` may send one of the requests with which the editor saves. */
const config = presetConfig('wordpress', [
  {
    name: 'tight',
    match: 'POST /index.php',
    when: { userAgent: { contains: 'tight' } },
    requests: 1,
    window: '1h',
  },
  { name: 'everything', match: '* /*', requests: 1_000_000, window: '1h' },
])
const { direct, ways } = setStage({ start, http2: true, config })
const all = [direct, ...ways]

/** WordPress offers its editor only to browsers that it recognizes. */
const AGENT = 'Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36 tight'

type Report = { readonly editorMs: number } & Record<string, unknown>

/** The editor opens faster than this; on a busy machine it may take a few times as long as without a gateway. */
const QUICK_MS = 15_000
let directEditorMs = 0

test.for(all)('a post is written, with an image, and read, $name', async (way) => {
  const { editorMs, ...report } = (await runClient('wordpress.js', way, [`${way.name} ü`])) as Report
  expect(report).toEqual({ ...expected(way, `${way.name} ü`), isRefused: false })
  // A browser that has to wait until idle connections of others are closed needs half a minute.
  if (way === direct) directEditorMs = editorMs
  else expect(editorMs).toBeLessThan(QUICK_MS + 3 * directEditorMs)
})

test.for(ways)('an author whose upload and save are refused has one post in the end, $name', async (way) => {
  const title = `${way.name} tight`
  await letIn(way, 'tight')
  const client = runClient('wordpress.js', way, [title, AGENT])
  const { editorMs, ...report } = (await letInWhenRefused(way, 'tight', client)).value as Report
  expect(editorMs).toBeGreaterThan(0)
  expect(report).toEqual({ ...expected(way, title), isRefused: true })
})

const expected = (way: Way, title: string): object => ({
  isSaved: true,
  image: { width: 300, isServed: true },
  title,
  text: 'A paragraph with ü.',
  posts: 1,
  failures: [],
  protocols: [way.protocol === 'http2' ? 'h2' : 'http/1.1'],
})

test.for(ways)('a client that guesses passwords is refused, another is not, $name', async (way) => {
  // Two ways lead to one gateway, so each way uses its own address.
  const guess = ['--interface', `127.0.0.${2 + ways.indexOf(way)}`, '--data', 'log=admin&pwd=wrong']
  const statuses: number[] = []
  for (let i = 0; i < 6; i++) statuses.push((await logIn(way, guess)).status)
  expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
  const right = await logIn(way, ['--data', 'log=admin&pwd=Secret-123'])
  expect(right.status).toBe(302)
  expect(right.headers['location']).toEqual(['ORIGIN/wp-admin/'])
})

const logIn = (way: Way, args: readonly string[]) =>
  curl(way, '/wp-login.php', ['--cookie', 'wordpress_test_cookie=WP%20Cookie%20check', ...args])

async function start(): Promise<{ port: number; probe: string }> {
  const databasePort = await startMariaDb('wordpress')
  const root = makeTemporaryDirectory()
  const site = join(root, 'site')
  // Copies the files that Debian keeps elsewhere and links to.
  spawnSync('cp', ['--recursive', '--dereference', '/usr/share/wordpress', site])
  const settings = {
    DB_NAME: 'wordpress',
    DB_USER: 'wordpress',
    DB_PASSWORD: 'test',
    DB_HOST: `127.0.0.1:${databasePort}`,
    DB_CHARSET: 'utf8mb4',
    DB_COLLATE: '',
    AUTH_KEY: 'test',
    SECURE_AUTH_KEY: 'test',
    LOGGED_IN_KEY: 'test',
    NONCE_KEY: 'test',
  }
  const lines = [
    '<?php',
    // As WordPress's handbook describes for proxies.
    "if (($_SERVER['HTTP_X_FORWARDED_PROTO'] ?? '') === 'https') $_SERVER['HTTPS'] = 'on';",
    "$origin = (isset($_SERVER['HTTPS']) ? 'https' : 'http') . '://' . $_SERVER['HTTP_HOST'];",
    "define('WP_HOME', $origin); define('WP_SITEURL', $origin);",
    ...['DISABLE_WP_CRON', 'WP_HTTP_BLOCK_EXTERNAL', 'AUTOMATIC_UPDATER_DISABLED'].map(
      (name) => `define('${name}', true);`,
    ),
    ...Object.entries(settings).map(([name, value]) => `define('${name}', '${value}');`),
    "$table_prefix = 'wp_';",
    "define('ABSPATH', __DIR__ . '/');",
    "require_once ABSPATH . 'wp-settings.php';",
  ]
  writeFileSync(join(site, 'wp-config.php'), lines.join('\n'))
  const workers = ['StartServers', 'MinSpareServers', 'ServerLimit', 'MaxRequestWorkers']
  const port = await startApache(
    root,
    ['dir', 'mime'],
    [
      `LoadModule php_module ${globSync('/usr/lib/apache2/modules/libphp*.so')[0] ?? ''}`,
      'TypesConfig /etc/mime.types',
      ...workers.map((name) => `${name} 8`),
      'MaxSpareServers 9',
      `DocumentRoot ${site}`,
      `<Directory ${site}>`,
      '  DirectoryIndex index.php',
      '  AddHandler application/x-httpd-php .php',
      '</Directory>',
    ],
    'mpm_prefork',
  )
  const form = new URLSearchParams({
    weblog_title: 'Test',
    user_name: 'admin',
    admin_password: 'Secret-123',
    admin_password2: 'Secret-123',
    pw_weak: '1',
    admin_email: 'admin@example.com',
    blog_public: '0',
  })
  const installed = await send(port, 'POST', '/wp-admin/install.php?step=2', {
    headers: { 'content-type': 'application/x-www-form-urlencoded', host: `127.0.0.1:${port}` },
    body: form.toString(),
  })
  expect(installed.body).toContain('Success!')
  return { port, probe: '/wp-includes/js/jquery/jquery.min.js' }
}
