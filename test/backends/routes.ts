import { tableOfEveryKind } from '../support/gateway/every-kind.ts'

/** A route that every backend serves and the gateway limits. Handlers name themselves in `X-Reached`, on HEAD too. */
export type Route = {
  /** The name that the handler reports, which is also the name of the rule. */
  readonly name: string
  readonly method: string
  /** A path of the route, in its plain spelling. */
  readonly path: string
  readonly rule: string
}

/** A literal path, a path with a parameter, and a whole subtree under any method. */
export const routes: readonly Route[] = [
  { name: 'login', method: 'POST', path: '/login', rule: 'POST /login' },
  { name: 'export', method: 'GET', path: '/api/v1/export/7', rule: 'GET /api/v1/export/:id' },
  { name: 'admin', method: 'GET', path: '/admin/x', rule: '* /admin/*' },
]

/** The same routes, with a script as the first one. */
export const scriptRoutes: readonly Route[] = routes.map((route) =>
  route.name === 'login' ? { ...route, path: '/login.php', rule: 'POST /login.php' } : route,
)

/** A `sluice.yaml` that counts these routes and never refuses. It also has rules of every kind. */
export function limitsOf(limited: readonly Route[]): string {
  return tableOfEveryKind(
    limited.map(({ name, rule }) => `{ name: ${name}, match: '${rule}', requests: 1000000000, window: 1d }`),
  )
}
