/** An error in a client's input: it is not a request, or one of its parts is too large. */
export type SyntaxFault = 'syntax' | 'head-size' | 'extension-size'

/** A client's bytes violate RFC 9112. The message describes how, contains no part of the request, and is for the log only. */
export class RequestSyntaxError extends Error {
  override readonly name = 'RequestSyntaxError'
  readonly fault: SyntaxFault

  constructor(message: string, fault: SyntaxFault = 'syntax') {
    super(message)
    this.fault = fault
  }
}
