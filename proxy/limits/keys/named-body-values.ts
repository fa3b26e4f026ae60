import { MAX_READINGS } from './partition-key.ts'
import { BodyNames, type BodyPart } from './body/names/body-names.ts'
import { KeyBody } from './body/key-body.ts'

const names = new WeakMap<BodyPart, BodyNames>()

/**
 * Returns the values that a request counts under if a member of its JSON body has this text, such as the name of an account. Values that
 * most backends read come first.
 *
 * @returns empty if the text has no visible character, or more readings than a request may have
 */
export function namedBodyValues(part: BodyPart, text: string): readonly string[] {
  const known = names.get(part) ?? new BodyNames([part])
  names.set(part, known)
  const sent = part.path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), text)
  const bytes = Buffer.from(JSON.stringify(sent))
  const rawHeaders = ['content-type', 'application/json']
  const body = new KeyBody({ bytes, isWhole: true }, { rawHeaders }, '/', known)
  const isAmbiguous = body
    .find(part)
    .values.some((value) => body.readingsOf(value, part).usual.length > MAX_READINGS)
  return isAmbiguous ? [] : body.readPart(part)
}
