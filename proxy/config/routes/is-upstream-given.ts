import type { Source } from '../../../shared/settings/problems.ts'
import { fileNames, variableName } from '../../../shared/settings/table.ts'
import { gatewayTable } from '../settings-table.ts'

/** Whether `upstream` was set, in the environment or the file, rather than left at its default. */
export function isUpstreamGiven(env: NodeJS.ProcessEnv, file: Pick<Source, 'given'> | undefined): boolean {
  const isInFile = fileNames('upstreamUrl', gatewayTable.upstreamUrl).some(
    (name) => file && Object.hasOwn(file.given, name),
  )
  return isInFile || Boolean(env[variableName('upstreamUrl')])
}
