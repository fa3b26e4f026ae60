import type { KeySource } from '../part-values.ts'

/**
 * The method, host and path of a request, which its device is known for: at others under the same rule there may be pages, which answer 200
 * to anything. Two ports, or a name with a dot at its end, can be two applications, so hosts are compared as they were sent, in lower case;
 * paths as well, but for the values of path parameters: of servlets, which ignore these, `;jsessionid=…` is another one in each session.
 *
 * @param source its `host` and `target` are read
 * @returns what new tokens are for; then, if the path has parameters, the same without them. Tokens of this one are valid for the request,
 *   but not the other way around: to most services `/login;x` is another page, which may answer 200
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
