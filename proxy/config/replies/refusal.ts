import { extname } from 'node:path'
import { z } from 'zod'
import { errors } from '../../../shared/error-replies.ts'
import { filePath, needsText, wholeNumber } from '../../../shared/settings/kinds.ts'
import type { RefusalSource } from '../../policy.ts'
import { addReplyHeaderIssues } from './reply-headers.ts'

const typesOfFiles = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.htm', 'text/html; charset=utf-8'],
  ['.json', 'application/json'],
  ['.txt', 'text/plain; charset=utf-8'],
])

const needsBody = 'needs text, or a mapping or list that is sent as JSON'
const needsMediaType = 'needs a media type, such as text/plain; charset=utf-8'
const needsHeaders = 'needs a mapping of names and values'
const needsHeaderValue = { error: needsText('text of visible ASCII characters and spaces', () => true) }

/** The fields of a refusal, as written. */
const refusalFields = {
  status: wholeNumber(400, 599)
    .schema.prefault(errors.tooManyRequests.status)
    .meta({ description: 'Status code of the response.' }),
  body: z
    .union(
      [z.string(needsBody), z.record(z.string(), z.unknown(), needsBody), z.array(z.unknown(), needsBody)],
      needsBody,
    )
    .optional()
    .meta({
      description:
        'Body of the response: text, or a mapping or list that is sent as JSON. Default: the usual body, with this status as code.',
    }),
  bodyFile: filePath.schema.optional().meta({ description: 'File with the body of the response.' }),
  contentType: z
    .string(needsMediaType)
    .regex(/^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+(; ?[a-z0-9-]+=[a-z0-9"_.:+-]+)*$/i, needsMediaType)
    .optional()
    .meta({
      description:
        'Media type of the body. Default: application/json for JSON, text/plain; charset=utf-8 for text, by its name for bodyFile.',
    }),
  html: filePath.schema
    .optional()
    .meta({ description: 'HTML file for clients whose Accept header prefers HTML, such as browsers.' }),
  headers: z
    .record(
      z.string(),
      z.string(needsHeaderValue).regex(/^(?! )[\x20-\x7e]{0,1024}(?<! )$/, needsHeaderValue),
      needsHeaders,
    )
    .superRefine(addReplyHeaderIssues)
    .optional()
    .meta({ description: 'Headers to add to the response.' }),
}

type Written = z.output<z.ZodObject<typeof refusalFields>>

/** The response to a refused request. Files are read elsewhere (`readRefusals`). */
export const refusal = z
  .strictObject(refusalFields, 'needs a mapping with status, body, html or headers')
  .refine(({ body, bodyFile }) => body === undefined || bodyFile === undefined, {
    path: ['bodyFile'],
    error: 'bodyFile cannot be combined with body, keep one of them',
  })
  .refine(({ bodyFile, contentType }) => contentType !== undefined || !isOfUnknownType(bodyFile), {
    path: ['bodyFile'],
    error: `needs contentType too, or a name that ends in ${[...typesOfFiles.keys()].join(', ')}`,
  })
  .transform((written): RefusalSource => ({
    status: written.status,
    ...bodyOf(written),
    ...(written.html !== undefined && { htmlFile: written.html }),
    headers: Object.entries(written.headers ?? {}).flatMap(([name, value]) => [name.toLowerCase(), value]),
  }))

function isOfUnknownType(file: string | undefined): boolean {
  return file !== undefined && !typesOfFiles.has(extname(file).toLowerCase())
}

function bodyOf({
  status,
  body,
  bodyFile,
  contentType,
}: Written): Pick<RefusalSource, 'contentType' | 'body'> {
  if (bodyFile !== undefined) {
    const byName = typesOfFiles.get(extname(bodyFile).toLowerCase())
    return { contentType: contentType ?? byName ?? 'application/octet-stream', body: { file: bodyFile } }
  }
  if (typeof body === 'string')
    return { contentType: contentType ?? 'text/plain; charset=utf-8', body: { text: body } }
  const json = body ?? { code: status, error: errors.tooManyRequests.text }
  return { contentType: contentType ?? 'application/json', body: { text: JSON.stringify(json) } }
}
