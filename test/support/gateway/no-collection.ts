/** Replaces `collectGarbage` of `shared/v8-gc.ts` in a gateway that starts from a bundle. */
export function collectGarbage(): void {
  // Such a gateway does not live long enough for a collection to pay off.
}
