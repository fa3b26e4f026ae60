let second = 0
let text = ''

/** The time as the header `date` has it (RFC 9110 section 5.6.7): one text for all responses of a second. */
export function currentDate(): string {
  const nowMs = Date.now()
  const nowSecond = Math.floor(nowMs / 1000)
  if (nowSecond !== second) {
    second = nowSecond
    text = new Date(nowMs).toUTCString()
  }
  return text
}
