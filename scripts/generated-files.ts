import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from 'json-schema-to-typescript'
import { format } from 'oxfmt'
import { z } from 'zod'
import { originTable } from '../origin/settings.ts'
import { defaultLimits } from '../proxy/config/rules/default-limits.ts'
import { ruleFields } from '../proxy/config/rules/limits.ts'
import { configFileSchema } from '../proxy/config/file/schema.ts'
import { gatewayTable } from '../proxy/config/settings-table.ts'
import { style } from '../oxfmt.config.ts'
import { renderFolders } from './folders.ts'
import { fileNames, variableName, type SettingsTable } from '../shared/settings/table.ts'

const root = join(import.meta.dirname, '..')

/**
 * Renders the generated files, by path. The JSON Schema, the TypeScript types of `sluice.yaml` and the tables of the reference come from
 * the settings; the diagram of the folders comes from the imports.
 */
export async function renderGenerated(): Promise<Map<string, string>> {
  const reference = join(root, 'docs/configuration.md')
  const text = await format(reference, withTables(readFileSync(reference, 'utf8')), style)
  const architecture = join(root, 'docs/architecture.md')
  const picture = await renderFolders()
  const types = join(root, 'proxy/config/written/sluice-yaml.ts')
  return new Map([
    [join(root, 'sluice.schema.json'), `${JSON.stringify(renderJsonSchema(), null, 2)}\n`],
    [types, (await format(types, await renderTypes(), style)).code],
    [reference, text.code],
    [architecture, replaceGenerated(readFileSync(architecture, 'utf8'), () => picture)],
  ])
}

/** Draft 7, because the YAML language server that editors use supports it best. */
function renderJsonSchema(): object {
  return z.toJSONSchema(configFileSchema, { io: 'input', target: 'draft-07' })
}

/** Renders the TypeScript types of the contents of `sluice.yaml`. */
function renderTypes(): Promise<string> {
  return compile(renderJsonSchema(), 'SluiceYaml', {
    additionalProperties: false,
    bannerComment: '// Generated from the settings: npm run generate',
    strictIndexSignatures: true,
    ignoreMinAndMaxItems: true,
    format: false,
  })
}

const tables: Readonly<Record<string, () => string>> = {
  'gateway settings': () => renderSettings(gatewayTable, { inFile: true }),
  'origin settings': () => renderSettings(originTable, { inFile: false }),
  'rule fields': renderRuleFields,
  'built-in limits': renderDefaultLimits,
}

function withTables(text: string): string {
  return replaceGenerated(text, (name) => {
    const render = tables[name]
    if (!render) throw new Error(`docs/configuration.md asks for an unknown table: ${name}`)
    return render()
  })
}

function replaceGenerated(text: string, render: (name: string) => string): string {
  return text.replace(
    /(<!-- generated: (.+) -->\n)[^]*?(<!-- end -->)/g,
    (_block, begin: string, name: string, end: string) => `${begin}\n${render(name)}\n\n${end}`,
  )
}

/** @param where.inFile whether the settings may also be in `sluice.yaml` */
function renderSettings(table: SettingsTable, { inFile }: { readonly inFile: boolean }): string {
  const rows = Object.entries(table).map(([property, setting]) => {
    const { initial, kind, meaning } = setting
    const fields = fileNames(property, setting).map(code).join(', ') || '(environment only)'
    return [
      code(variableName(property)),
      ...(inFile ? [fields] : []),
      initial === undefined || String(initial) === '' ? 'none' : code(String(initial)),
      `${meaning}.`,
      kind.needs.includes('[') ? code(kind.needs) : kind.needs,
    ]
  })
  return renderTable(['variable', ...(inFile ? ['in sluice.yaml'] : []), 'default', 'meaning', 'value'], rows)
}

function renderRuleFields(): string {
  const { properties = {}, required = [] } = z.toJSONSchema(z.object(ruleFields), { io: 'input' })
  const rows = Object.entries(properties).map(([name, field]) => {
    const { description = '', default: fallback } = typeof field === 'object' ? field : {}
    const initial =
      typeof fallback === 'string' ? code(fallback) : required.includes(name) ? 'required' : 'none'
    return [code(name), initial, description]
  })
  return renderTable(['field', 'default', 'meaning'], rows)
}

function renderDefaultLimits(): string {
  const rows = defaultLimits.map(({ name, match, requests, window }) => {
    return [code(name), code(match), String(requests), window]
  })
  return renderTable(['name', 'match', 'requests', 'window'], rows)
}

function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function code(text: string): string {
  return `\`${text}\``
}
