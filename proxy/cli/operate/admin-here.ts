import { baseUrlOf } from '../../../shared/settings/base-url.ts'
import { parseAdminAddress } from '../../config/written/parsed-admin-address.ts'

/** Returns the admin address of a gateway started here, with the same environment and settings file. */
export function adminHere(env: NodeJS.ProcessEnv, cwd: string): string {
  return baseUrlOf(parseAdminAddress(env, cwd))
}
