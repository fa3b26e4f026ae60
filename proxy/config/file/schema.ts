import { z } from 'zod'
import type { Reading } from '../../../shared/settings/settings.ts'
import { fileFields } from '../../../shared/settings/table.ts'
import type { PlaceOfRule } from '../checks/table.ts'
import { clientList } from '../clients/client-list.ts'
import { crowdsec } from '../clients/crowdsec.ts'
import { geoip } from '../clients/geoip.ts'
import { tokenSettings } from '../clients/token-settings.ts'
import { preset } from '../presets.ts'
import { cors } from '../replies/cors.ts'
import { refusal } from '../replies/refusal.ts'
import { requestHeaders } from '../routes/request-headers.ts'
import { routes } from '../routes/routes.ts'
import { limits } from '../rules/limits.ts'
import { gatewayTable } from '../settings-table.ts'
import { webhooks } from '../webhooks/webhooks.ts'

/** `sluice.yaml`, as written: the fields of the settings table, and the fields that only a file has. */
export const configFileSchema = z
  .strictObject({
    ...fileFields(gatewayTable),
    allowList: clientList
      .optional()
      .meta({ description: 'Clients that no rule counts or refuses, by address or secret header.' }),
    denyList: clientList
      .optional()
      .meta({ description: 'Clients whose requests are answered 403 before any rule applies.' }),
    crowdsec: crowdsec
      .optional()
      .meta({ description: 'CrowdSec whose decisions deny clients: its local API.' }),
    cors: cors
      .optional()
      .meta({ description: 'Lets scripts of other origins read responses of the gateway itself.' }),
    refusal: refusal
      .optional()
      .meta({ description: 'Response to requests that a rule refuses, unless the rule has one of its own.' }),
    jwt: tokenSettings.optional().meta({
      description:
        'How to verify JSON Web Tokens, whose claims key, conditions and plans can name (jwt:CLAIM).',
    }),
    geoip: geoip.optional().meta({
      description: 'Databases in MMDB format with the countries and the autonomous systems of addresses.',
    }),
    webhooks: webhooks.optional().meta({
      description: 'Receivers of events: bans, outages of Redis, settings that are wrong.',
    }),
    preset: preset.optional().meta({
      description:
        'Limits that come with the gateway, by name, or several of them. Rules in limits come first, and replace those of the same name.',
    }),
    requestHeaders: requestHeaders
      .optional()
      .meta({ description: 'Headers that every backend gets. A client cannot send them.' }),
    routes: routes.optional(),
    limits: limits.optional(),
  })
  .meta({ title: 'sluice.yaml', description: 'Settings and limits of the Sluice gateway.' })

/**
 * Returns the fields that the mapping at a path can have, whatever else can be there. Returns none for a mapping whose names are those of
 * headers and the like.
 */
export function fieldsAt(path: readonly PropertyKey[]): readonly string[] {
  const forms = path.reduce<readonly Form[]>(
    (all, step) => all.flatMap((form) => formsBelow(form, step)),
    formsOf(configFileSchema),
  )
  return forms.flatMap((form) => (form.type === 'object' ? Object.keys(form.shape) : []))
}

/** The definition of a schema, which may be one for text or numbers. */
type Form = z.core.$ZodTypes['_zod']['def']

function formsOf(schema: z.core.$ZodType): readonly Form[] {
  const { def } = (schema as z.core.$ZodTypes)._zod
  if ('innerType' in def) return formsOf(def.innerType)
  if (def.type === 'pipe') return formsOf(def.in)
  return def.type === 'union' ? def.options.flatMap(formsOf) : [def]
}

function formsBelow(form: Form, step: PropertyKey): readonly Form[] {
  if (form.type === 'array') return formsOf(form.element)
  if (form.type === 'record') return formsOf(form.valueType)
  const field = form.type === 'object' ? form.shape[String(step)] : undefined
  return field ? formsOf(field) : []
}

/** The file, and its valid values. */
export type FileReading = Reading<z.output<typeof configFileSchema>>

/** Returns a function that returns the place of a rule's field. */
export function placeOfRule({ source }: FileReading): PlaceOfRule {
  return (index, field) => source.placeOf(['limits', index, field])
}
