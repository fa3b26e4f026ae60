import { comparableHost } from '../../../request/host.ts'
import type { KeySource } from '../part-values.ts'

/**
 * The method, host and path of a request, which its device is known for: at others under the same rule there may be pages, which answer 200
 * to anything. Hosts are compared as rules compare them, paths as they were sent.
 */
export function signInTargetOf({ host, target }: Pick<KeySource, 'host' | 'target'>, method: string): string {
  return `${method} ${comparableHost(host)} ${pathOf(target.forwardTarget)}`
}

/** @param target path and query */
export function pathOf(target: string): string {
  const question = target.indexOf('?')
  return question === -1 ? target : target.slice(0, question)
}
