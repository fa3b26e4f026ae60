/** For `collectGarbage` of `shared/v8-gc.ts` in a gateway that starts from a bundle. */
export function collectGarbage(): void {
  // It lives too short for that.
}
