let text = ''
let expires: NodeJS.Timeout | undefined

/** The time as the header `date` has it (RFC 9110 section 5.6.7), to the second. */
export function currentDate(): string {
  if (expires) return text
  const now = new Date()
  text = now.toUTCString()
  expires = setTimeout(forget, 1000 - now.getMilliseconds()).unref()
  return text
}

function forget(): void {
  expires = undefined
}
