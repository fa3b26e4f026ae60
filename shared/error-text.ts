/**
 * The text of an error for the log: its message. Where that says nothing, the texts of the errors behind it: Node's error has no message if
 * it could not connect to any of several addresses, and `fetch` fails with a TypeError that says `fetch failed` or `terminated`.
 */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { message, cause } = error
  if (error instanceof TypeError && cause instanceof Error) return errorText(cause)
  if (message !== '') return message
  if (error instanceof AggregateError && error.errors.length > 0)
    return error.errors.map(errorText).join(', ')
  return 'code' in error ? String(error.code) : error.name
}
