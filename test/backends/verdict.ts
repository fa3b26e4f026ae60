import type { Response } from './ask.ts'
import { routes } from './routes.ts'

/** The name of the route whose handler has answered. */
export function handlerReached({ head }: Response): string | undefined {
  const [, name] = /\r\nx-reached: *(\w+)/i.exec(head) ?? []
  return routes.some((route) => route.name === name) ? name : undefined
}

/** The names of the routes' rules under which the gateway has counted the request, by its `RateLimit`. */
export function rulesCounted({ head }: Response): string[] {
  const [, value = ''] = /\r\nratelimit: *(.*)/i.exec(head) ?? []
  return Array.from(value.matchAll(/"(\w+)"/g), ([, name = '']) => name).filter((name) =>
    routes.some((route) => route.name === name),
  )
}

/** A handler was reached through the gateway and its rule has not counted it. */
export function isUncounted(response: Response): boolean {
  const handler = handlerReached(response)
  return handler !== undefined && !rulesCounted(response).includes(handler)
}

/** The gateway's own answer, and not the backend's. */
export function isRefusal({ status, body }: Response): boolean {
  return status >= 400 && body.includes(`"code":${status}`)
}
