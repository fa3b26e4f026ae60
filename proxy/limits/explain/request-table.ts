import { doAtOnce, type Steps } from '../../../shared/steps.ts'
import { compileClientListsInSteps, type ClientLists } from '../clients/client-lists.ts'
import type { ListEntry, Rule } from '../../policy.ts'
import type { AddressReader } from '../../request/addresses/client-address.ts'
import type { HeadOptions } from '../../request/request-head.ts'
import { preflightRules } from '../rules/preflight-rules.ts'
import { compileRoutes, type RouteTable, type UpstreamRoute } from '../rules/upstream-routes.ts'
import { compileRulesInSteps, type RuleTable } from '../rules/rule-table.ts'

/** What decides about a request before anything is counted, compiled from settings. */
export type RequestTable = {
  /** Those in force: none with limiting switched off. */
  readonly rules: readonly Rule[]
  readonly table: RuleTable
  /** The same for preflights, where others than `table` apply to them. */
  readonly preflightTable: RuleTable | undefined
  readonly lists: ClientLists
  readonly addresses: AddressReader
  readonly head: HeadOptions
  /** Names of routes; undefined where everything goes to `upstream`. */
  readonly routes: { readonly table: RouteTable<string>; readonly hasFallback: boolean } | undefined
}

/** The settings that it is compiled from. */
export type TableSettings = {
  readonly rateLimitingDisabled: boolean
  readonly rules: readonly Rule[]
  readonly allowList: readonly ListEntry[]
  readonly denyList: readonly ListEntry[]
  /** Undefined without CORS. */
  readonly cors?: object | undefined
  readonly maxTargetBytes: number
  readonly maxHeaderCount: number
  readonly upstreamUrl: URL
  readonly routes: readonly UpstreamRoute[] | undefined
  /** What no route matches goes to `upstreamUrl`. */
  readonly hasFallback: boolean
}

export function compileTable(settings: TableSettings, addresses: AddressReader): RequestTable {
  return doAtOnce(compileTableInSteps(settings, addresses))
}

export function* compileTableInSteps(settings: TableSettings, addresses: AddressReader): Steps<RequestTable> {
  const { routes, hasFallback } = settings
  const rules = settings.rateLimitingDisabled ? [] : settings.rules
  return {
    rules,
    table: yield* compileRulesInSteps(rules),
    preflightTable: settings.cors && (yield* compileRulesInSteps(preflightRules(rules))),
    lists: yield* compileClientListsInSteps({
      allowList: settings.allowList,
      denyList: settings.denyList,
      rules,
    }),
    addresses,
    head: {
      maxTargetBytes: settings.maxTargetBytes,
      maxHeaderCount: settings.maxHeaderCount,
      upstreamHost: settings.upstreamUrl.host,
    },
    routes: routes && {
      table: yield* compileRoutes(
        routes,
        routes.map(({ name }) => name),
      ),
      hasFallback,
    },
  }
}
