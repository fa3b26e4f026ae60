import { deserialize, serialize } from 'node:v8'
import type { Steps } from '../../../shared/steps.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Refusal } from '../../limits/replies.ts'

/**
 * Settings as bytes, for another thread or process. They contain maps and bytes, which JSON does not have, and a URL. The first piece has
 * everything except the lists that can be long, and each further piece has some entries of one list, so that no piece takes long to parse.
 */
export type SettingsPieces = readonly Uint8Array[]

const longLists = ['rules', 'allowList', 'denyList', 'routes'] as const
type LongList = (typeof longLists)[number]

type FirstPiece = Omit<GatewaySettings, LongList | 'upstreamUrl' | 'refusals'> & {
  readonly upstreamUrl: string
  readonly everyRule: Refusal | undefined
  readonly hasRoutes: boolean
}
type ListPiece = { readonly list: LongList | 'refusals'; readonly entries: readonly unknown[] }

const ENTRIES_IN_PIECE = 50

/** Writes settings in the form that `readPieces` reads, in one step per piece. */
export function* writePieces(settings: GatewaySettings): Steps<SettingsPieces> {
  const { rules, allowList, denyList, routes, upstreamUrl, refusals, ...others } = settings
  const first: FirstPiece = {
    ...others,
    upstreamUrl: upstreamUrl.href,
    everyRule: refusals.everyRule,
    hasRoutes: routes !== undefined,
  }
  const pieces: Uint8Array[] = [serialize(first)]
  const lists = { rules, allowList, denyList, routes: routes ?? [], refusals: [...refusals.ofRules] }
  for (const list of [...longLists, 'refusals'] as const) {
    for (let from = 0; from < lists[list].length; from += ENTRIES_IN_PIECE) {
      yield
      const piece: ListPiece = { list, entries: lists[list].slice(from, from + ENTRIES_IN_PIECE) }
      pieces.push(serialize(piece))
    }
  }
  return pieces
}

/** @param pieces the result of `writePieces`, in order */
export function* readPieces(pieces: SettingsPieces): Steps<GatewaySettings> {
  const [head, ...others] = pieces
  const { upstreamUrl, everyRule, hasRoutes, ...settings } = deserialize(
    head ?? new Uint8Array(),
  ) as FirstPiece
  const lists: Record<ListPiece['list'], unknown[]> = {
    rules: [],
    allowList: [],
    denyList: [],
    routes: [],
    refusals: [],
  }
  for (const piece of others) {
    yield
    const { list, entries } = deserialize(piece) as ListPiece
    lists[list].push(...entries)
  }
  const { rules, allowList, denyList, routes } = lists as Required<Pick<GatewaySettings, LongList>>
  return {
    ...settings,
    upstreamUrl: new URL(upstreamUrl),
    rules,
    allowList,
    denyList,
    routes: hasRoutes ? routes : undefined,
    refusals: { everyRule, ofRules: new Map(lists.refusals as (readonly [string, Refusal])[]) },
  }
}
