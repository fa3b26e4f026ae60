import { ErrorReply, errors } from '../../../shared/error-replies.ts'
import type { ApiRoutes } from './api.ts'
import { withBody } from './read-body.ts'

/** The outcome of a reload, with the names of rules and, in `restart`, of settings in the file. */
export type Reloaded = {
  readonly outcome: 'reloaded' | 'unchanged'
  readonly tableHash: string
  readonly rules: number
  readonly added: readonly string[]
  readonly changed: readonly string[]
  readonly removed: readonly string[]
  /** Names of routes. */
  readonly routes: Readonly<Record<'added' | 'changed' | 'removed', readonly string[]>>
  readonly restart: readonly string[]
  readonly warnings: readonly string[]
}

/** `refused`: the settings are invalid. `failed`: they are valid, but not every process could apply them. */
export type ReloadOutcome =
  | Reloaded
  | { readonly outcome: 'refused'; readonly mistakes: readonly string[] }
  | { readonly outcome: 'failed' }

/** The routes for reloads. The current table stays if the outcome is `refused` or `failed`. */
export function createReloadRoutes(reload: () => Promise<ReloadOutcome>): ApiRoutes {
  const answer = withBody('reloaded', async () => {
    const result = await reload()
    if (result.outcome === 'failed') return errors.reloadFailed
    if (result.outcome !== 'refused') return result
    const { status, text } = errors.settingsWrong
    return new ErrorReply(status, text, { mistakes: result.mistakes })
  })
  return new Map([['/api/reload', { POST: answer }]])
}
