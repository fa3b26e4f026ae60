import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

const ops = join(import.meta.dirname, '../../../ops')

type Query = { readonly where: string; readonly query: string }
type Target = { readonly expr: string }
type Panel = {
  readonly id: number
  readonly title: string
  readonly type: string
  readonly targets?: readonly Target[]
}
export type Dashboard = {
  readonly uid: string
  readonly panels: readonly (Panel & {
    readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number }
  })[]
  readonly annotations: { readonly list: readonly (Target & { readonly name: string })[] }
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly definition?: string }[]
  }
}
type Alerts = {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[]
  }[]
}

export const dashboard = JSON.parse(
  readFileSync(join(ops, 'grafana/dashboards/sluice.json'), 'utf8'),
) as Dashboard

export const alerts = (
  parse(readFileSync(join(ops, 'prometheus/alerts.yml'), 'utf8')) as Alerts
).groups.flatMap(({ rules }) => rules)

/** The queries of the dashboard's panels and annotations. */
export function dashboardQueries(): Query[] {
  return [
    ...dashboard.panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({ where: `panel "${title}"`, query: expr })),
    ),
    ...dashboard.annotations.list.map(({ name, expr }) => ({ where: `annotation "${name}"`, query: expr })),
  ]
}

export function alertQueries(): Query[] {
  return alerts.map(({ alert, expr }) => ({ where: alert, query: expr }))
}
