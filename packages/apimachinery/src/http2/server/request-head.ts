/** Validation of request header fields. Source: RFC 9113, section 8 */

export interface RequestHead {
  readonly method: string;
  /** Path and query, `/api/v1/pods?limit=5`, or `*` (OPTIONS only). */
  readonly path: string;
  readonly authority: string | undefined;
  /** Value of `content-length`, in bytes; undefined without one. */
  readonly contentLength: number | undefined;
}

/** Connection-specific fields, which HTTP/2 forbids (RFC 9113, 8.2.2). */
export const connectionFields: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

const pseudoFields = [":method", ":path", ":scheme", ":authority"] as const;
const colon = 58;

/**
 * @param fields name, value, name, value …
 * @returns undefined for a malformed request
 */
export function requestHeadOf(fields: readonly string[]): RequestHead | undefined {
  const pseudo: (string | undefined)[] = [undefined, undefined, undefined, undefined];
  let at = 0;
  for (; at < fields.length; at += 2) {
    const name = fields[at] as string;
    if (name.charCodeAt(0) !== colon) break;
    const which = pseudoFields.indexOf(name as (typeof pseudoFields)[number]);
    if (which === -1 || pseudo[which] !== undefined || !isValue(fields[at + 1] as string)) return undefined;
    pseudo[which] = fields[at + 1];
  }
  const [method, path, scheme, authority] = pseudo;
  if (method === undefined || path === undefined || scheme === undefined) return undefined;
  if (!isToken(method) || !(path.charCodeAt(0) === 47 /* / */ || (path === "*" && method === "OPTIONS"))) return undefined;
  if (!areRegular(fields, at)) return undefined;
  const length = announcedLength(fields, at);
  return length === null ? undefined : { method, path, authority, contentLength: length };
}

/** @returns whether the fields are valid as trailers */
export function areTrailers(fields: readonly string[]): boolean {
  return areRegular(fields, 0);
}

function areRegular(fields: readonly string[], from: number): boolean {
  for (let at = from; at < fields.length; at += 2) {
    const name = fields[at] as string;
    const value = fields[at + 1] as string;
    if (!isName(name) || !isValue(value) || connectionFields.has(name)) return false;
    if (name === "te" && value !== "trailers") return false;
  }
  return true;
}

/** @returns null when the value is not a number, or when two values differ */
function announcedLength(fields: readonly string[], from: number): number | undefined | null {
  let text: string | undefined;
  for (let at = from; at < fields.length; at += 2) {
    if (fields[at] !== "content-length") continue;
    if (text !== undefined && text !== fields[at + 1]) return null;
    text = fields[at + 1];
  }
  if (text === undefined) return undefined;
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : null;
}

/** Indexed by octet: 1 for token characters without upper-case letters (RFC 9110, 5.6.2; RFC 9113, 8.2.1). */
const nameOctets = new Uint8Array(256);
for (const character of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") nameOctets[character.charCodeAt(0)] = 1;

/** Cache of validated names. */
const knownNames = new Set<string>();
const mostKnownNames = 500;

function isName(name: string): boolean {
  if (knownNames.has(name)) return true;
  if (name === "") return false;
  for (let i = 0; i < name.length; i++) if (nameOctets[name.charCodeAt(i)] !== 1) return false;
  if (knownNames.size < mostKnownNames && name.length <= 64) knownNames.add(name);
  return true;
}

const forbiddenInValue = /[\0\r\n]/;

function isValue(value: string): boolean {
  if (forbiddenInValue.test(value)) return false;
  return !(isBlank(value.charCodeAt(0)) || isBlank(value.charCodeAt(value.length - 1)));
}

/** False for NaN, the code of a missing character. */
function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

function isToken(method: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(method);
}
