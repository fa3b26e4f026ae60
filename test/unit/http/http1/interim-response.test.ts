import { expect, test } from 'vitest'
import type { Output } from '../../../../proxy/http/http1/output.ts'
import type { Http1Request } from '../../../../proxy/http/http1/request.ts'
import { Http1Response } from '../../../../proxy/http/http1/response.ts'

/** The bytes that a client of this version gets when this much output is already pending for it. */
function writtenTo(httpVersion: string, pendingBytes: number): string {
  let written = ''
  const output = { pendingBytes, write: (text: string) => (written += text) } as unknown as Output
  const connection = {
    output,
    keepAliveLine: '',
    finishResponse: () => undefined,
    closeSoon: () => undefined,
  }
  const response = new Http1Response({ httpVersion } as unknown as Http1Request, connection, true)
  response.writeInterimResponse(103, ['link', '</a>', 'link', '</b>'])
  return written
}

test('an interim response is written for an HTTP/1.1 client that reads', () => {
  const text = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nlink: </b>\r\n\r\n'
  expect(writtenTo('1.1', 0)).toBe(text)
  expect(writtenTo('1.1', 16 * 1024)).toBe(text)
  expect(writtenTo('1.1', 16 * 1024 + 1)).toBe('')
  expect(writtenTo('1.0', 0)).toBe('')
})
