import type { Source } from '../../../shared/settings/problems.ts'
import { fileNames, variableName } from '../../../shared/settings/table.ts'
import { gatewayTable } from '../settings-table.ts'

/** Whether `upstream` was given, in the environment or the file, and is not its default. */
export function isUpstreamGiven(env: NodeJS.ProcessEnv, file: Source | undefined): boolean {
  const isInFile = fileNames('upstreamUrl', gatewayTable.upstreamUrl).some(
    (name) => file && Object.hasOwn(file.given, name),
  )
  return isInFile || Boolean(env[variableName('upstreamUrl')])
}
