import { tableOfEveryKind } from '../support/gateway/every-kind.ts'

/** What every backend serves and the gateway limits. Handlers name themselves in `X-Reached`, on HEAD too. */
export type Route = {
  /** What the handler says, and the name of the rule. */
  readonly name: string
  readonly method: string
  /** A path of it, spelled plainly. */
  readonly path: string
  readonly rule: string
}

/** A literal path, one with a parameter, and a whole subtree under any method. */
export const routes: readonly Route[] = [
  { name: 'login', method: 'POST', path: '/login', rule: 'POST /login' },
  { name: 'export', method: 'GET', path: '/api/v1/export/7', rule: 'GET /api/v1/export/:id' },
  { name: 'admin', method: 'GET', path: '/admin/x', rule: '* /admin/*' },
]

/** The same where the first is a script. */
export const scriptRoutes: readonly Route[] = routes.map((route) =>
  route.name === 'login' ? { ...route, path: '/login.php', rule: 'POST /login.php' } : route,
)

/** Routes as `sluice.yaml`: counted, and never refused. Beside their rules there are those of every kind. */
export function limitsOf(limited: readonly Route[]): string {
  return tableOfEveryKind(
    limited.map(({ name, rule }) => `{ name: ${name}, match: '${rule}', requests: 1000000000, window: 1d }`),
  )
}
