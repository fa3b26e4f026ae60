import type { ListFile } from '../policy.ts'

/** The databases that `geoip` names, as written and with absolute paths. */
export type GeoFiles = { readonly country?: ListFile; readonly asn?: ListFile }
