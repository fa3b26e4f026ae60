let second = 0
let text = ''

/** The current time as the value of the header `date` (RFC 9110 section 5.6.7). All responses of a second share one text. */
export function currentDate(): string {
  const nowMs = Date.now()
  const nowSecond = Math.floor(nowMs / 1000)
  if (nowSecond !== second) {
    second = nowSecond
    text = new Date(nowMs).toUTCString()
  }
  return text
}
