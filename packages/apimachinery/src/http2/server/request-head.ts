/**
 * Validation of request header fields. Values may begin or end with blanks, which RFC 9113 forbids: Go's clients send them, and Go's
 * server accepts them and passes them on as they are.
 * Source: RFC 9113, section 8; golang.org/x/net http/httpguts, ValidHeaderFieldValue
 */

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
 * @returns for a malformed request what is wrong with it
 */
export function requestHeadOf(fields: readonly string[]): RequestHead | string {
  const pseudo: (string | undefined)[] = [undefined, undefined, undefined, undefined];
  let at = 0;
  for (; at < fields.length; at += 2) {
    const name = fields[at] as string;
    if (name.charCodeAt(0) !== colon) break;
    const which = pseudoFields.indexOf(name as (typeof pseudoFields)[number]);
    if (which === -1) return "an unknown pseudo field";
    if (pseudo[which] !== undefined) return `two fields ${name}`;
    if (!isValue(fields[at + 1] as string)) return `an invalid value of ${name}`;
    pseudo[which] = fields[at + 1];
  }
  const [method, path, scheme, authority] = pseudo;
  if (method === undefined || path === undefined || scheme === undefined) return "a missing pseudo field";
  if (!isToken(method)) return "an invalid value of :method";
  if (!(path.charCodeAt(0) === 47 /* / */ || (path === "*" && method === "OPTIONS"))) return "an invalid value of :path";
  const fault = faultOf(fields, at);
  if (fault !== undefined) return fault;
  const length = announcedLength(fields, at);
  return length === null ? "an invalid content-length" : { method, path, authority, contentLength: length };
}

/** @returns whether the fields are valid as trailers */
export function areTrailers(fields: readonly string[]): boolean {
  return faultOf(fields, 0) === undefined;
}

/** @returns what is wrong with the first malformed field */
function faultOf(fields: readonly string[], from: number): string | undefined {
  for (let at = from; at < fields.length; at += 2) {
    const name = fields[at] as string;
    const value = fields[at + 1] as string;
    if (!isName(name)) return "an invalid field name";
    if (!isValue(value)) return `an invalid value of ${name}`;
    if (connectionFields.has(name)) return `a connection-specific field ${name}`;
    if (name === "te" && value !== "trailers") return "a te other than trailers";
  }
  return undefined;
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

/** Control characters other than the tab. */
const forbiddenInValue = /[\x00-\x08\x0a-\x1f\x7f]/;

function isValue(value: string): boolean {
  return !forbiddenInValue.test(value);
}

function isToken(method: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(method);
}
