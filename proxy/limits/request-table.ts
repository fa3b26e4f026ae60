import { doAtOnce, type Steps } from '../../shared/steps.ts'
import { compileAccountOverrides } from './clients/lists/account-overrides.ts'
import { compileClientListsInSteps, type WrittenLists } from './clients/lists/client-lists.ts'
import { compileConditions } from './conditions/conditions.ts'
import { Devices } from './keys/devices/devices.ts'
import type { ListEntry, Rule } from '../policy.ts'
import { readsBody } from '../policy/partition.ts'
import type { AddressReader } from '../request/addresses/client-address.ts'
import type { Geo } from '../request/addresses/geo/geo.ts'
import type { AddressLists } from '../request/addresses/lists/address-lists.ts'
import { headOptionsOf, type HeadOptions } from '../request/request-head.ts'
import { preflightRules } from './rules/preflight-rules.ts'
import { compileRoutes, type RouteTable, type UpstreamRoute } from './rules/upstream-routes.ts'
import { compileRulesInSteps } from './rules/rule-table.ts'
import type { CompiledLimits } from './verdict.ts'

/** What the settings say about requests. */
export type RequestTable = {
  readonly limits: CompiledLimits
  /** The current rules, as written; empty if limiting is switched off. */
  readonly written: readonly Rule[]
  readonly head: HeadOptions
  /** Names of routes; undefined if everything goes to `upstream`. */
  readonly routes: { readonly table: RouteTable<string>; readonly hasFallback: boolean } | undefined
}

/** The settings from which the table is compiled. */
export type TableSettings = {
  readonly rateLimitingDisabled: boolean
  readonly rules: readonly Rule[]
  readonly allowList: readonly ListEntry[]
  readonly denyList: readonly ListEntry[]
  /** Required if a rule has `device`. */
  readonly deviceSecret?: readonly string[] | undefined
  /** The CORS settings; undefined without CORS. */
  readonly cors?: object | undefined
  readonly maxTargetBytes: number
  readonly maxHeaderCount: number
  readonly upstreamUrl: URL
  readonly routes: readonly UpstreamRoute[] | undefined
  /** Whether requests that no route matches go to `upstreamUrl`. */
  readonly hasFallback: boolean
}

/** @param files the address lists that the settings name */
export function compileTable(
  settings: TableSettings,
  addresses: AddressReader,
  files: AddressLists,
  geo?: Geo,
): RequestTable {
  return doAtOnce(compileTableInSteps(settings, addresses, files, geo))
}

/** The same in steps, so that requests are served while a large table is compiled. */
export function* compileTableInSteps(
  settings: TableSettings,
  addresses: AddressReader,
  files: AddressLists,
  geo?: Geo,
): Steps<RequestTable> {
  const { routes, hasFallback } = settings
  const rules = settings.rateLimitingDisabled ? [] : settings.rules
  const lists = { allowList: settings.allowList, denyList: settings.denyList, rules }
  return {
    limits: {
      rules: yield* compileRulesInSteps(rules),
      preflightRules: settings.cors && (yield* compileRulesInSteps(preflightRules(rules))),
      clientLists:
        isAnybodyListed(lists) || files.crowdsec ? yield* compileClientListsInSteps(lists, files) : undefined,
      accountOverrides: compileAccountOverrides(rules),
      conditions: yield* compileConditions(rules, { files, wallNow: Date.now }),
      addresses,
      geo,
      devices: composeDevices(rules, settings.deviceSecret),
      hasPlans: rules.some(({ policy }) => policy.plans !== undefined),
      hasBodyRules: rules.some(({ policy }) => readsBody(policy)),
    },
    written: rules,
    head: headOptionsOf(settings),
    routes: routes && {
      table: yield* compileRoutes(
        routes,
        routes.map(({ name }) => name),
      ),
      hasFallback,
    },
  }
}

function composeDevices(rules: readonly Rule[], secrets: readonly string[] = []): Devices | undefined {
  return rules.some(({ policy }) => policy.device) ? new Devices({ secrets }) : undefined
}

function isAnybodyListed({ allowList, denyList, rules }: WrittenLists): boolean {
  const all = rules.flatMap((rule) => [
    rule.allowList,
    ...(rule.overrides ?? []).map(({ clients }) => clients),
  ])
  return [allowList, denyList, ...all].some((list = []) => list.length > 0)
}
