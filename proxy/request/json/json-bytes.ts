// The bytes that the syntax of JSON is made of (RFC 8259 section 2), and that of its dialects.

export const space = 0x20
export const quote = 0x22
export const comma = 0x2c
export const colon = 0x3a
export const equalsSign = 0x3d
export const greaterThan = 0x3e
export const openingBracket = 0x5b
export const backslash = 0x5c
export const closingBracket = 0x5d
export const lowerU = 0x75
export const lowerX = 0x78
export const openingBrace = 0x7b
export const closingBrace = 0x7d
