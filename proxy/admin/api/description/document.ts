import { z } from 'zod'
import { apiOperations, probes, streams, type Operation } from './operations.ts'
import { failure, health, mistaken } from './replies.ts'

/** Returns the description of the admin listener in OpenAPI 3.1, made from the schemas that check the requests. */
export function describeApi(version: string): object {
  const paths = [
    ...Object.entries({ ...apiOperations, ...streams }).map((entry) => describePath(entry, true)),
    ...Object.entries(probes).map((entry) => describePath(entry, false)),
  ]
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sluice',
      version,
      description: "The operators' interface, on the admin listener. docs/operations.md explains it.",
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    paths: Object.fromEntries(paths),
    components: {
      schemas: { Error: schemaOf(failure, 'output') },
      securitySchemes: {
        token: {
          type: 'http',
          scheme: 'bearer',
          description: 'ADMIN_TOKEN. Without it, only local requests are answered.',
        },
      },
    },
  }
}

type Methods = Readonly<Partial<Record<'GET' | 'POST', Operation>>>

function describePath([path, methods]: [string, Methods], isGuarded: boolean): [string, object] {
  const described = Object.entries(methods).map(([method, operation]) => [
    method.toLowerCase(),
    describeOperation(path, method, operation, isGuarded),
  ])
  return [path, Object.fromEntries(described) as object]
}

function describeOperation(path: string, method: string, operation: Operation, isGuarded: boolean): object {
  const { summary, body, query, reply, contentType = 'application/json' } = operation
  return {
    operationId: `${method.toLowerCase()}${path.replace(/\W+(\w)/g, (_, first: string) => first.toUpperCase())}`,
    summary,
    security: isGuarded ? [{ token: [] }] : [],
    ...(query && { parameters: parametersOf(query.schema) }),
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: schemaOf(body.schema, 'input') } },
      },
    }),
    responses: {
      200: { description: 'OK', content: { [contentType]: { schema: schemaOf(reply, 'output') } } },
      ...describeFailures(path, operation, isGuarded),
    },
  }
}

function describeFailures(path: string, { body, query, failures }: Operation, isGuarded: boolean): object {
  const statuses: Record<string, string> = {
    ...((body ?? query) && { 400: 'The request is invalid; the error text says why' }),
    ...(isGuarded && {
      401: 'The token is missing or wrong',
      403: 'Without ADMIN_TOKEN: not a local request',
      429: 'The token is wrong, as were ten others within a minute',
    }),
    413: 'The body is too large, or no body is allowed',
    ...(body && { 415: 'The body is not application/json' }),
    ...failures,
    default: 'Any other error',
  }
  return Object.fromEntries(
    Object.entries(statuses).map(([status, description]) => [
      status,
      { description, content: { 'application/json': { schema: failureSchema(path, status) } } },
    ]),
  )
}

function failureSchema(path: string, status: string): object {
  if (status === '422') return schemaOf(mistaken, 'output')
  if (path === '/readyz' && status === '503') return schemaOf(health, 'output')
  return { $ref: '#/components/schemas/Error' }
}

function parametersOf(schema: z.ZodObject): object[] {
  return Object.entries(schema.shape).map(([name, value]) => ({
    name,
    in: 'query',
    required: false,
    schema: schemaOf(value as z.ZodType, 'output'),
  }))
}

/** JSON Schema 2020-12, the dialect of OpenAPI 3.1. */
function schemaOf(schema: z.ZodType, io: 'input' | 'output'): object {
  const described: Record<string, unknown> = { ...z.toJSONSchema(schema, { io }) }
  // The dialect is that of the whole document.
  delete described['$schema']
  return described
}
