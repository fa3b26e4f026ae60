import { nearestWord } from '../../../shared/settings/did-you-mean.ts'
import type { ClientRequest } from '../../http/message/client-request.ts'
import { writePattern, type RoutePattern, type Rule } from '../../policy.ts'
import { isPreflight } from '../../request/preflight.ts'
import type { RequestHead } from '../../request/request-head.ts'
import { preflightRules } from '../rules/preflight-rules.ts'
import { compileRules } from '../rules/rule-table.ts'

/** A criterion of a rule that a request does not meet. */
export type Unmet = 'method' | 'path' | 'host' | 'except'

export type WhyNot = {
  /** The criteria each of which alone keeps the rule from matching; if there are none, all criteria that are not met. */
  readonly unmet: readonly Unmet[]
  /** Whether the rule nearly matches: a single criterion is not met and, if that is the path, the path is similar. */
  readonly isNear: boolean
  readonly text: string
}

const everyPath: RoutePattern = { methods: [], path: '/*' }

/** Widens one criterion of a rule so that every request meets it. */
const widened: Readonly<Record<Unmet, (rule: Rule) => Rule>> = {
  method: (rule) => ({ ...rule, match: rule.match.map(({ path }) => ({ methods: [], path })) }),
  path: (rule) => ({ ...rule, match: rule.match.map(({ methods }) => ({ methods, path: everyPath.path })) }),
  host: ({ policy, match, except }) => ({ policy, match, except }),
  except: (rule) => ({ ...rule, except: [] }),
}
const all = Object.keys(widened) as Unmet[]

/** Explains why a rule does not match a request. Matches the request against the rule with one criterion widened at a time. */
export function whyNot(rule: Rule, request: ClientRequest, head: RequestHead, withCors: boolean): WhyNot {
  const { method, headers } = request
  const matches = (changed: Rule): boolean =>
    compileRules([changed]).match(head.target, method, headers, head.host).length > 0
  if (withCors && isPreflight(request, head.target)) {
    const [left] = preflightRules([rule])
    if ((!left || !matches(left)) && matches(rule))
      return {
        unmet: ['method'],
        isNear: true,
        text: 'a preflight counts only under rules that name OPTIONS',
      }
  }
  const alone = all.filter((criterion) => matches(widened[criterion](rule)))
  // The criteria that keep the rule from matching even if all others are widened.
  const failing = all.filter(
    (criterion) =>
      !matches(
        all.filter((other) => other !== criterion).reduce((wide, other) => widened[other](wide), rule),
      ),
  )
  const unmet = alone.length > 0 ? alone : failing
  const isNear = alone.length > 0 && (!alone.includes('path') || alone.length > 1 || isSimilar(rule, head))
  return {
    unmet,
    isNear,
    text: unmet.map((criterion) => describe(criterion, rule, method, matches)).join('; '),
  }
}

function describe(criterion: Unmet, rule: Rule, method: string, matches: (rule: Rule) => boolean): string {
  switch (criterion) {
    case 'method':
      return `the method ${method} is not ${listed(rule.match.flatMap(({ methods }) => methods))}`
    case 'path':
      return `the path is not ${listed(rule.match.map(({ path }) => path))}`
    case 'host':
      return `the host is not ${listed(rule.hosts ?? [])}`
    case 'except': {
      // An exception applies if the rule matches with the exception as its only pattern.
      const excepting = rule.except.filter((pattern) => matches({ ...rule, match: [pattern], except: [] }))
      return `except matches ${listed((excepting.length > 0 ? excepting : rule.except).map(writePattern))}`
    }
  }
}

function listed(values: readonly string[]): string {
  return [...new Set(values)].join(', ')
}

/** Whether the path looks like a misspelled pattern: it has the same first segment as a pattern, or differs by a typo. */
function isSimilar({ match }: Rule, { target }: RequestHead): boolean {
  const path = target.matchPath
  const paths = match.map((pattern) => pattern.path.toLowerCase())
  return nearestWord(path, paths) !== undefined || paths.some((each) => firstOf(each) === firstOf(path))
}

function firstOf(path: string): string {
  return path.split('/', 2).join('/')
}
