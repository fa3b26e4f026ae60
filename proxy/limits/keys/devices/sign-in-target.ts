import type { KeySource } from '../part-values.ts'

/**
 * Returns the method, host and path for which the device of a request is known. Other targets under the same rule may be pages that answer
 * 200 to any request. Hosts are compared as sent, in lower case, because another port or a trailing dot can mean another application. Paths
 * are compared as sent, too, except for the values of path parameters: servlets ignore these, and `;jsessionid=…` differs in each session.
 *
 * @param source its `host` and `target` are read
 * @returns the target of new tokens; then, if the path has parameters, the same target without them. Tokens of the latter are valid for the
 *   request, but not the other way around: to most services, `/login;x` is another page, which may answer 200
 */
export function signInTargets(
  { host, target }: Pick<KeySource, 'host' | 'target'>,
  method: string,
): readonly [string, ...string[]] {
  const before = `${method} ${host.toLowerCase()}`
  const path = pathOf(target.forwardTarget)
  if (!path.includes(';')) return [`${before} ${path}`]
  return [
    `${before} ${path.replace(valueOfParameter, ';$1')}`,
    `${before} ${path.replace(pathParameters, '')}`,
  ]
}

const valueOfParameter = /;([^;=/]*)=[^;/]*/g
const pathParameters = /;[^/]*/g

/** @param target path and query */
export function pathOf(target: string): string {
  const question = target.indexOf('?')
  return question === -1 ? target : target.slice(0, question)
}
