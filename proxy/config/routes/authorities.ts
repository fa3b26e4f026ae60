import { resolve } from 'node:path'
import { problemAt, type PlaceOf, type Problem } from '../../../shared/settings/problems.ts'
import { readRegularFileSync } from '../../../shared/settings/regular-file.ts'
import type { UpstreamRoute } from '../../limits/rules/upstream-routes.ts'
import { mistakeInAuthorities } from '../checks/certificates.ts'

/** A route with the name of its file of CA certificates instead of the content. */
export type WrittenRoute = Omit<UpstreamRoute, 'authorities'> & { readonly upstreamCaFile?: string }

/**
 * Reads the files of CA certificates that routes name, so that a reload applies changed files.
 *
 * @param folder the folder of the settings file, from which relative paths start
 */
export function readRouteAuthorities(
  routes: readonly WrittenRoute[] | undefined,
  placeOf: PlaceOf,
  folder: string,
): { readonly routes: readonly UpstreamRoute[] | undefined; readonly problems: readonly Problem[] } {
  const problems: Problem[] = []
  const read = ({ upstreamCaFile, ...route }: WrittenRoute, index: number): UpstreamRoute => {
    if (upstreamCaFile === undefined) return route
    const mistake = mistakeInAuthorities(upstreamCaFile, folder)
    if (mistake === undefined)
      return { ...route, authorities: readRegularFileSync(resolve(folder, upstreamCaFile)).toString() }
    problems.push(problemAt(placeOf(['routes', index, 'upstreamCaFile']), mistake))
    return route
  }
  return { routes: routes?.map(read), problems }
}
