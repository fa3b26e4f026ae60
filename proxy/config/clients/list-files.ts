import { accessSync, constants, statSync } from 'node:fs'
import { resolve } from 'node:path'
import {
  problemAt,
  reasonOf,
  showValue,
  type PlaceOf,
  type Problem,
} from '../../../shared/settings/problems.ts'
import type { ListEntry, ListFile, Rule, RuleCondition } from '../../policy.ts'
import { conditionsOf } from '../../limits/rules/condition-needs.ts'

type Lists = {
  readonly allowList?: readonly ListEntry[] | undefined
  readonly denyList?: readonly ListEntry[] | undefined
  readonly rules?: readonly Rule[] | undefined
}

/** Returns the files of all lists, without duplicates. */
export function listFilesOf({ allowList = [], denyList = [], rules = [] }: Lists): ListFile[] {
  const entries = [...denyList, ...allowList, ...rules.flatMap(entriesOf)]
  const byLocation = new Map<string, ListFile>()
  for (const file of entries.flatMap(filesOf))
    if (!byLocation.has(file.location)) byLocation.set(file.location, file)
  return [...byLocation.values()]
}

/** Returns the entries with the absolute paths of their files. */
export function locateLists(entries: readonly ListEntry[], folder: string): readonly ListEntry[] {
  return entries.map((entry) => {
    if (filesOf(entry).length === 0) return entry
    const files = filesOf(entry).map(({ file }) => ({ file, location: resolve(folder, file) }))
    return { ...entry, files }
  })
}

/** Does what `locateLists` does, for the lists of rules. */
export function locateRuleLists(rules: readonly Rule[], folder: string): readonly Rule[] {
  return rules.map((rule) => {
    if (!entriesOf(rule).some((entry) => filesOf(entry).length > 0)) return rule
    const { allowList, when, unless } = rule
    return {
      ...rule,
      ...(allowList && { allowList: locateLists(allowList, folder) }),
      ...(when && { when: locateConditions(when, folder) }),
      ...(unless && { unless: locateConditions(unless, folder) }),
    }
  })
}

function locateConditions(conditions: readonly RuleCondition[], folder: string): readonly RuleCondition[] {
  return conditions.map((condition) =>
    condition.kind === 'ip' ? { ...condition, anyOf: locateLists(condition.anyOf, folder) } : condition,
  )
}

function entriesOf(rule: Rule): readonly ListEntry[] {
  return [...(rule.allowList ?? []), ...conditionsOf(rule).flatMap(addressesOf)]
}

function addressesOf(condition: RuleCondition): readonly ListEntry[] {
  return condition.kind === 'ip' ? condition.anyOf : []
}

/** Finds list files that are missing or cannot be read. Their lines are checked when they are read, which takes longer. */
export function findMissingLists(
  { allowList = [], denyList = [], rules = [] }: Lists,
  placeOf: PlaceOf,
  folder: string,
): Problem[] {
  const findIn = (entries: readonly ListEntry[], path: readonly PropertyKey[]): Problem[] =>
    [...entries.entries()].flatMap(([index, entry]) =>
      filesOf(entry).flatMap(({ file }) => {
        const why = whyUnreadable(resolve(folder, file))
        if (why === undefined) return []
        const text = `got ${showValue(file)}, needs a readable file with addresses (${why})`
        return [problemAt(placeOf([...path, index]), text)]
      }),
    )
  return [
    ...findIn(allowList, ['allowList']),
    ...findIn(denyList, ['denyList']),
    ...[...rules.entries()].flatMap(([index, rule]) => [
      ...findIn(rule.allowList ?? [], ['limits', index, 'allowList']),
      ...(['when', 'unless'] as const).flatMap((field) =>
        [...(rule[field] ?? []).entries()].flatMap(([at, condition]) =>
          findIn(addressesOf(condition), ['limits', index, field, at]),
        ),
      ),
    ]),
  ]
}

function filesOf(entry: ListEntry): readonly ListFile[] {
  return entry.kind === 'ip' ? (entry.files ?? []) : []
}

/** Returns why a file cannot be read; undefined if it can. Refuses pipes, which could be read only once. */
function whyUnreadable(path: string): string | undefined {
  try {
    if (!statSync(path).isFile()) return 'it is not a regular file'
    accessSync(path, constants.R_OK)
    return undefined
  } catch (error) {
    return reasonOf(error)
  }
}
