import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { loadOriginSettings } from '../../origin/settings.ts'

// Compose publishes GATEWAY_PORT, in any form that compose accepts. The demo service gets the same value, and must start with each form.

type ComposeFile = {
  readonly services: { readonly origin: { readonly environment: Record<string, string> } }
}

const file = readFileSync(join(import.meta.dirname, '../../docker-compose.yml'), 'utf8')
const { environment } = (parse(file) as ComposeFile).services.origin

/** Interpolates `${NAME:-default}` as compose does. */
function interpolate(text: string, variables: Readonly<Record<string, string>>): string {
  return text.replaceAll(
    /\$\{(\w+)(?::-([^}]*))?\}/g,
    (_, name: string, standard?: string) => variables[name] ?? standard ?? '',
  )
}

test.each([
  ['8080', 'http://localhost:8080'],
  ['127.0.0.1:8080', 'http://localhost:8080'],
  ['192.0.2.7:80', 'http://192.0.2.7:80'],
  ['[::1]:8080', 'http://localhost:8080'],
  ['8080-8090', 'http://localhost:8080'],
])('with GATEWAY_PORT=%s the demo service of docker-compose.yml starts', (published, url) => {
  const entries = Object.entries(environment)
  const env = entries.map(([name, value]) => [name, interpolate(value, { GATEWAY_PORT: published })])
  const { settings } = loadOriginSettings(Object.fromEntries(env) as Record<string, string>)
  expect(settings.originPublicUrl ?? settings.originPublished).toBe(url)
})
