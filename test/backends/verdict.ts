import type { Response } from './ask.ts'
import { routes } from './routes.ts'

/** The name of the route whose handler answered. */
export function handlerReached({ head }: Response): string | undefined {
  const [, name] = /\r\nx-reached: *(\w+)/i.exec(head) ?? []
  return routes.some((route) => route.name === name) ? name : undefined
}

/** The names of the routes' rules under which the gateway counted the request, from `RateLimit`. */
export function rulesCounted({ head }: Response): string[] {
  const [, value = ''] = /\r\nratelimit: *(.*)/i.exec(head) ?? []
  return Array.from(value.matchAll(/"(\w+)"/g), ([, name = '']) => name).filter((name) =>
    routes.some((route) => route.name === name),
  )
}

/** Whether a handler was reached through the gateway and its rule has not counted the request. */
export function isUncounted(response: Response): boolean {
  const handler = handlerReached(response)
  return handler !== undefined && !rulesCounted(response).includes(handler)
}

/** Whether the response is the gateway's own instead of the backend's. */
export function isRefusal({ status, body }: Response): boolean {
  return status >= 400 && body.includes(`"code":${status}`)
}
