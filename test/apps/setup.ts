import { existsSync } from 'node:fs'
import { installDebianPackages, installNpmPackages } from '../support/run/packages.ts'

/** Debian's packages, each with a file that it brings. */
const debianPackages = {
  chromium: '/usr/bin/chromium',
  curl: '/usr/bin/curl',
  git: '/usr/lib/git-core/git-http-backend',
  'apache2-bin': '/usr/sbin/apache2',
  gunicorn: '/usr/bin/gunicorn',
  litmus: '/usr/bin/litmus',
  'python3-h2': '/usr/lib/python3/dist-packages/h2/__init__.py',
  'golang-go': '/usr/bin/go',
  'golang-github-masterminds-sprig-dev': '/usr/share/gocode/src/github.com/Masterminds/sprig/doc.go',
  'golang-k8s-sigs-yaml-dev': '/usr/share/gocode/src/sigs.k8s.io/yaml/yaml.go',
  zsh: '/usr/bin/zsh',
  'python3-flask': '/usr/lib/python3/dist-packages/flask/__init__.py',
}

/** Gets the applications and clients before the first test. Where one cannot be had, the run fails and says which. */
export function setup(): void {
  installDebianPackages(missing())
  if (missing().length > 0)
    throw new Error(`These packages of Debian's are missing: ${missing().join(' ')}. Install them.`)
  installNpmPackages(import.meta.dirname)
}

function missing(): string[] {
  return Object.entries(debianPackages)
    .filter(([, file]) => !existsSync(file))
    .map(([name]) => name)
}
