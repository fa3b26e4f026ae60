/** The characters of a token (`tchar`, RFC 9110 section 5.6.2), for a character class of a regular expression. */
export const tokenCharacters = "!#$%&'*+\\-.^_`|~0-9A-Za-z"

/** A token, such as a method, the name of a header or of its parameter, or an authentication scheme. */
export const token = new RegExp(`^[${tokenCharacters}]+$`)

/** Matches a text with a character that no value of a header or trailer may have (RFC 9110 section 5.5), CR and LF among them. */
export const illegalInValue = /[^\t\x20-\x7e\x80-\xff]/
