import { globSync } from 'node:fs'
import { installDebianPackages, installNpmPackages } from '../support/run/packages.ts'

type Need = {
  /** A file of the package, or a pattern for its path. */
  readonly file: string
  /** The tests that need it, if not all. */
  readonly tests?: readonly string[]
}

const inBrowser = ['cross-origin', 'jupyter', 'next', 'page', 'report', 'verdaccio', 'vite', 'wordpress']

/** Debian packages. */
const debianPackages: Readonly<Record<string, Need>> = {
  chromium: { file: '/usr/bin/chromium', tests: inBrowser },
  curl: { file: '/usr/bin/curl' },
  git: { file: '/usr/lib/git-core/git-http-backend', tests: ['git'] },
  'apache2-bin': { file: '/usr/sbin/apache2', tests: ['git', 'prefork', 'svn', 'webdav', 'wordpress'] },
  gunicorn: { file: '/usr/bin/gunicorn', tests: ['account-attack', 'flask', 'keep-alive', 'prefork'] },
  'libapache2-mod-php': { file: '/usr/lib/apache2/modules/libphp*.so', tests: ['prefork', 'wordpress'] },
  nginx: { file: '/usr/sbin/nginx', tests: ['account-attack', 'prefork'] },
  'redis-server': { file: '/usr/bin/redis-server', tests: ['account-attack'] },
  'php-cli': { file: '/usr/bin/php', tests: ['account-attack'] },
  'php-fpm': { file: '/usr/sbin/php-fpm*', tests: ['prefork'] },
  puma: { file: '/usr/bin/puma', tests: ['prefork', 'redmine'] },
  prometheus: { file: '/usr/bin/prometheus', tests: ['prometheus'] },
  redmine: { file: '/usr/share/redmine/config.ru', tests: ['redmine'] },
  'redmine-sqlite': { file: '/usr/share/doc/redmine-sqlite/copyright', tests: ['redmine'] },
  'mariadb-server': { file: '/usr/sbin/mariadbd', tests: ['wordpress'] },
  'php-mysql': { file: '/usr/lib/php/*/mysqli.so', tests: ['wordpress'] },
  wordpress: { file: '/usr/share/wordpress/wp-load.php', tests: ['wordpress'] },
  'wordpress-theme-twentytwentythree': {
    file: '/usr/share/wordpress/wp-content/themes/twentytwentythree/style.css',
    tests: ['wordpress'],
  },
  starman: { file: '/usr/bin/starman', tests: ['prefork'] },
  'docker-registry': { file: '/usr/bin/docker-registry', tests: ['docker-registry'] },
  'libapache2-mod-svn': { file: '/usr/lib/apache2/modules/mod_dav_svn.so', tests: ['svn'] },
  'python3-caldav': { file: '/usr/lib/python3/dist-packages/caldav/__init__.py', tests: ['radicale'] },
  rclone: { file: '/usr/bin/rclone', tests: ['s3', 'svn'] },
  s3cmd: { file: '/usr/bin/s3cmd', tests: ['s3'] },
  radicale: { file: '/usr/bin/radicale', tests: ['radicale'] },
  skopeo: { file: '/usr/bin/skopeo', tests: ['docker-registry'] },
  subversion: { file: '/usr/bin/svn', tests: ['svn'] },
  'jupyter-notebook': { file: '/usr/bin/jupyter-notebook', tests: ['jupyter'] },
  'python3-ipykernel': { file: '/usr/lib/python3/dist-packages/ipykernel/__init__.py', tests: ['jupyter'] },
  litmus: { file: '/usr/bin/litmus', tests: ['webdav'] },
  'python3-h2': { file: '/usr/lib/python3/dist-packages/h2/__init__.py', tests: ['http2'] },
  'golang-go': { file: '/usr/bin/go', tests: ['helm'] },
  'golang-github-masterminds-sprig-dev': {
    file: '/usr/share/gocode/src/github.com/Masterminds/sprig/doc.go',
    tests: ['helm'],
  },
  'golang-k8s-sigs-yaml-dev': { file: '/usr/share/gocode/src/sigs.k8s.io/yaml/yaml.go', tests: ['helm'] },
  zsh: { file: '/usr/bin/zsh', tests: ['completion-zsh'] },
  'python3-django': {
    file: '/usr/lib/python3/dist-packages/django/__init__.py',
    tests: ['account-attack'],
  },
  'python3-flask': { file: '/usr/lib/python3/dist-packages/flask/__init__.py', tests: ['flask'] },
}

/** The applications of the tests that vitest was asked to run; empty for all. */
const named = process.argv.flatMap((argument) => /test\/apps\/([\w-]+)\.test\.ts$/.exec(argument)?.[1] ?? [])

/** Installs the applications and clients before the first test. If one is unavailable, the run fails and names it. */
export function setup(): void {
  installDebianPackages(missing())
  if (missing().length > 0)
    throw new Error(`These packages of Debian's are missing: ${missing().join(' ')}. Install them.`)
  installNpmPackages(import.meta.dirname)
}

function missing(): string[] {
  return Object.entries(debianPackages)
    .filter(([, { tests }]) => named.length === 0 || !tests || named.some((name) => tests.includes(name)))
    .filter(([, { file }]) => globSync(file).length === 0)
    .map(([name]) => name)
}
