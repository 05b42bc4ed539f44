/**
 * The most common form of an HTTP/1.1 request: GET with a path, and without fields that affect the connection or announce a body.
 */
export interface SimpleHead {
  /** Path and query, unmodified. */
  readonly url: string;
  /** Name, value, name, value, … in wire order. */
  readonly fields: readonly string[];
  /** The names in lower case, without duplicates. */
  readonly names: readonly string[];
}

/** Longer heads are rare and may arrive in several chunks. */
const longestHeadBytes = 8 * 1024;

/** Bounds the quadratic search for duplicates. */
const mostFields = 64;

/** Parses the requests of one connection. Clients repeat their fields with each request, so the last field block is cached. */
export class SimpleHeadReader {
  #block = "";
  #fields: Fields | undefined;

  /** @returns undefined unless the bytes are exactly one simple request */
  read(bytes: Buffer): SimpleHead | undefined {
    if (bytes.length > longestHeadBytes) return undefined;
    const text = bytes.toString("latin1");
    const lineEnd = text.indexOf("\r\n");
    const targetEnd = lineEnd - version.length;
    if (!text.startsWith("GET /") || !text.startsWith(version, targetEnd)) return undefined;
    const url = text.slice(4, targetEnd);
    if (!visible.test(url)) return undefined;
    const block = text.slice(lineEnd);
    if (block !== this.#block) {
      this.#fields = fieldsOf(block);
      this.#block = this.#fields === undefined ? "" : block;
    }
    return this.#fields && { url, ...this.#fields };
  }
}

const version = " HTTP/1.1";
const visible = /^[!-~]+$/;
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const printable = /^[\t -~]*$/;

/** Fields that announce a body or affect the connection. */
const notSimple: ReadonlySet<string> = new Set(
  "content-length expect http2-settings keep-alive proxy-connection te trailer transfer-encoding upgrade".split(" "),
);

type Fields = Omit<SimpleHead, "url">;

/** @param block starts with the CRLF of the request line and ends with an empty line */
function fieldsOf(block: string): Fields | undefined {
  if (!block.endsWith("\r\n\r\n")) return undefined;
  const fields: string[] = [];
  const names: string[] = [];
  const lines = block.slice(2, -4).split("\r\n", mostFields + 1);
  if (lines.length > mostFields) return undefined;
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon));
    const value = line.slice(colon + 1);
    const lower = name.toLowerCase();
    if (!token.test(name) || !printable.test(value) || notSimple.has(lower) || names.includes(lower)) return undefined;
    if (lower === "connection" && value.trim().toLowerCase() !== "keep-alive") return undefined;
    fields.push(name, value.trim());
    names.push(lower);
  }
  return names.includes("host") ? { fields, names } : undefined;
}
